//! [`Lanes`]: the queued keys, and the selection of the next key. A key is represented by its slot
//! in [`Slots`].
//!
//! Each of the three priorities has a lane, which keeps the order in which keys were queued. In a
//! fair queue, the keys of a lane are divided into groups, for example by namespace, and the groups
//! take turns.
//!
//! The next key comes from the lane with the highest priority that has keys. The other lanes with
//! keys are passed over. A lane that was passed over [`MAX_PASSED`] times in a row goes first. If
//! two lanes have reached this limit, the one with the lower priority goes first. So a lane that
//! always has keys provides at least one of every `MAX_PASSED + 2` keys.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::Priority;
use crate::slots::{Hashing, List, Slots};

/// A lane that was passed over this many times in a row goes before higher lanes.
pub(crate) const MAX_PASSED: u32 = 10;

#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: [Lane; Priority::COUNT],
    /// For each lane, how many keys in a row were taken from other lanes while the lane had keys.
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

    /// Appends a slot to the lane of its key's priority.
    pub(crate) fn push<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let level = slots.get(id).priority.level();
        if self.lanes[level].is_empty() {
            self.passed[level] = 0;
        }
        self.lanes[level].push(slots, id);
        self.len += 1;
    }

    pub(crate) fn remove<T>(&mut self, slots: &mut Slots<T>, id: u32) {
        let level = slots.get(id).priority.level();
        self.lanes[level].remove(slots, id);
        self.len -= 1;
    }

    /// Returns the slot of the next key without removing it.
    #[inline]
    pub(crate) fn next(&self) -> Option<u32> {
        self.lanes[self.next_level()?].next()
    }

    /// Removes and returns the slot of the next key. Counts each other lane with keys as passed
    /// over.
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
        let starving = |level: &usize| waiting(level) && self.passed[*level] >= MAX_PASSED;
        let levels = 0..Priority::COUNT;
        levels.clone().find(starving).or_else(|| levels.rev().find(waiting))
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

/// One lane of a fair queue. The groups take turns: in each turn, one key of one group is taken.
#[derive(Debug, Default)]
struct Turns {
    groups: HashMap<u64, Group, Hashing>,
    /// The groups with keys, in the order of their next turns. Maps the number of a group's next
    /// turn to the hash of the group.
    order: BTreeMap<u64, u64>,
    /// A counter: the last number that was assigned to a turn of any group.
    turn: u64,
}

/// The keys of one group in one lane.
#[derive(Debug)]
struct Group {
    list: List,
    /// A number that orders the groups of the lane: the group with the lowest number is next. After
    /// its turn, a group receives a new, higher number.
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

    /// Removes and returns the slot of the next key. If its group still has keys, moves the group
    /// behind all other groups.
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

    /// Removes a slot from its group. The groups keep their order.
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
