//! Allocates the tables of the queue (`items` and `index` of its [`State`]) for many keys. This
//! happens while the queue is not locked, because growing a large table takes milliseconds.

use std::collections::VecDeque;

use hashbrown::HashTable;

use super::state::{SLICE, State};
use super::{Pending, Shared};

struct Tables<K> {
    items: VecDeque<Pending<K>>,
    index: HashTable<u64>,
}

impl<K: 'static> State<K> {
    /// Moves the queued keys to the empty `tables`, if their `items` are larger than the queue's
    /// and at most [`SLICE`] keys are queued. Returns the tables that are not used. The caller must
    /// drop them while the queue is not locked.
    fn make_room(&mut self, tables: Tables<K>) -> Tables<K> {
        // Moving many keys would lock the queue for too long.
        if self.items.len() > SLICE || tables.items.capacity() <= self.items.capacity() {
            return tables;
        }
        let Tables { mut items, mut index } = tables;
        items.append(&mut self.items);
        for (position, pending) in items.iter().enumerate() {
            let hash_of = |&ticket: &u64| items[(ticket - self.first_ticket) as usize].key.hash_value();
            index.insert_unique(pending.key.hash_value(), self.first_ticket + position as u64, hash_of);
        }
        Tables {
            items: std::mem::replace(&mut self.items, items),
            index: std::mem::replace(&mut self.index, index),
        }
    }
}

impl<K: 'static> Shared<K> {
    /// Makes room for `count` more keys if `count` is large and few keys are queued. Allocates
    /// memory while the queue is not locked.
    pub(super) fn make_room(&self, count: usize) {
        if count <= SLICE {
            return;
        }
        let count = count + self.state.lock().len();
        let tables = Tables { items: VecDeque::with_capacity(count), index: HashTable::with_capacity(count) };
        let unused = self.state.lock().make_room(tables);
        // The lock is released before the tables are freed.
        drop(unused);
    }
}
