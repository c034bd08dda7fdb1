//! [`Lanes`]: what waits for a worker, and what goes next.
//!
//! A lane for each priority. In a lane, keys go in the order in which they came; or, where the queue is fair between
//! groups, the groups take turns, and in each its keys go in order.
//!
//! The upper lane goes first, and yet nothing starves: a lane that has been passed over [`PATIENCE`] times in a row is
//! served before all others. So from a lane in which something waits, at least every `PATIENCE + 2`nd item is taken (one
//! more than one would think, because the lowest two lanes may lose patience together).

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::Priority;
use crate::slots::{Hashing, List, Slots};

/// How often a lane is passed over before it goes first.
pub(crate) const PATIENCE: u32 = 10;

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: [Lane; Priority::COUNT],
    /// How often each has been passed over since it was served or empty.
    passed: [u32; Priority::COUNT],
    len: usize,
}

impl Lanes {
    pub(crate) fn new(is_fair: bool) -> Self {
        let lane = || if is_fair { Lane::Fair(Turns::default()) } else { Lane::InOrder(List::new()) };
        Self { lanes: std::array::from_fn(|_| lane()), passed: [0; Priority::COUNT], len: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a slot at the end of the lane of its priority.
    pub(crate) fn push<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let level = slots.get(id).priority.level();
        if self.lanes[level].is_empty() {
            self.passed[level] = 0;
        }
        self.lanes[level].push(slots, id);
        self.len += 1;
    }

    /// Takes out a slot from wherever it waits.
    pub(crate) fn remove<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let level = slots.get(id).priority.level();
        self.lanes[level].remove(slots, id);
        self.len -= 1;
    }

    /// Says which slot is next.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        self.lanes[self.next_level()?].next()
    }

    /// Takes that slot out, as a turn of its lane.
    pub(crate) fn pop<T>(&mut self, slots: &mut Slots<T>) -> Option<u32> {
        let level = self.next_level()?;
        let id = self.lanes[level].pop(slots)?;
        self.len -= 1;
        for (passed, lane) in self.passed.iter_mut().zip(&self.lanes) {
            *passed = if lane.is_empty() { 0 } else { *passed + 1 };
        }
        self.passed[level] = 0;
        Some(id)
    }

    #[inline]
    fn next_level(&self) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let waiting = |level: &usize| !self.lanes[*level].is_empty();
        let impatient = |level: &usize| waiting(level) && self.passed[*level] >= PATIENCE;
        let levels = 0..Priority::COUNT;
        levels.clone().find(impatient).or_else(|| levels.rev().find(waiting))
    }
}

#[derive(Debug)]
enum Lane {
    InOrder(List),
    Fair(Turns),
}

impl Lane {
    #[inline]
    fn is_empty(&self) -> bool {
        match self {
            Self::InOrder(list) => list.is_empty(),
            Self::Fair(turns) => turns.order.is_empty(),
        }
    }

    #[inline]
    fn next(&self) -> Option<u32> {
        match self {
            Self::InOrder(list) => list.first(),
            Self::Fair(turns) => turns.next(),
        }
    }

    fn push<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        match self {
            Self::InOrder(list) => list.push(slots, id),
            Self::Fair(turns) => turns.push(slots, id),
        }
    }

    fn pop<T>(&mut self, slots: &mut Slots<T>) -> Option<u32> {
        match self {
            Self::InOrder(list) => {
                let id = list.first()?;
                list.remove(slots, id);
                Some(id)
            }
            Self::Fair(turns) => turns.pop(slots),
        }
    }

    fn remove<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        match self {
            Self::InOrder(list) => list.remove(slots, id),
            Self::Fair(turns) => turns.remove(slots, id),
        }
    }
}

/// The groups of a lane, by whose turn it is.
#[derive(Debug, Default)]
struct Turns {
    groups: HashMap<u64, Group, Hashing>,
    /// Groups by their turns; exactly those that have something waiting.
    order: BTreeMap<u64, u64>,
    turn: u64,
}

#[derive(Debug)]
struct Group {
    list: List,
    turn: u64,
}

impl Turns {
    #[inline]
    fn next(&self) -> Option<u32> {
        let (_, group) = self.order.first_key_value()?;
        self.groups.get(group)?.list.first()
    }

    fn push<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let number = slots.get(id).group;
        let group = self.groups.entry(number).or_insert_with(|| {
            self.turn += 1;
            self.order.insert(self.turn, number);
            Group { list: List::new(), turn: self.turn }
        });
        group.list.push(slots, id);
    }

    /// Takes out the next slot, which is its group's turn.
    fn pop<T>(&mut self, slots: &mut Slots<T>) -> Option<u32> {
        let (turn, number) = self.order.pop_first()?;
        let group = self.groups.get_mut(&number)?;
        let id = group.list.first()?;
        group.list.remove(slots, id);
        if group.list.is_empty() {
            self.groups.remove(&number);
        } else {
            debug_assert_eq!(group.turn, turn);
            self.turn += 1;
            group.turn = self.turn;
            self.order.insert(self.turn, number);
        }
        Some(id)
    }

    /// Takes out a slot that waits, which is nobody's turn.
    fn remove<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let number = slots.get(id).group;
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.list.remove(slots, id);
        if group.list.is_empty() {
            self.order.remove(&group.turn);
            self.groups.remove(&number);
        }
    }
}
