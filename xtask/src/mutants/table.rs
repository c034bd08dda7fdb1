//! The bugs that `cargo xtask mutants` plants in a copy of the sources. The simulation's own tests
//! plant other bugs, with a faulty `ListerWatcher`, in
//! `informer-factory/tests/simulation/bugs.rs`.

use super::{FoundBy, Mutant};

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a relist queues no deletions",
        file: "informer-core/src/delta_fifo/list.rs",
        text: "        self.complete\n",
        becomes: "        self.complete\n            && self.objects.is_empty()\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "changes of a key are queued in reverse",
        file: "informer-core/src/delta_fifo/merge.rs",
        text: "            deltas.push(delta);\n",
        becomes: "            deltas.insert(0, delta);\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "the queue does not wake its consumer",
        file: "informer-core/src/delta_fifo/mod.rs",
        text: "        if became_ready {\n",
        becomes: "        if became_ready && self.state.lock().closed {\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "the queue does not wake its consumer for a single key",
        file: "informer-core/src/delta_fifo/mod.rs",
        text: "(!before.0 && state.is_ready(), ",
        becomes: "(!before.0 && state.is_ready() && state.len() != 1, ",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a handler is not woken for a single event",
        file: "informer-core/src/processor/mailbox.rs",
        text: "if state.inbox.is_empty() { None }",
        becomes: "if state.inbox.len() <= 1 { None }",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a slow handler does not receive a delete after an update",
        file: "informer-core/src/processor/net_change.rs",
        text: "                Self::One(Event::Deleted(deleted.clone().after(old)))\n",
        becomes: "                drop((deleted, old));\n                return None;\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a slow handler receives a recreated object without the delete before it",
        file: "informer-core/src/processor/net_change.rs",
        text: "                Self::Recreated(Removal::Deleted(deleted), object.clone())\n",
        becomes: "                drop(deleted);\n                \
                  Self::One(Event::Added { object: object.clone(), is_in_initial_list: false })\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a late handler misses an object",
        file: "informer-core/src/processor/mod.rs",
        text: "snapshot().map(",
        becomes: "snapshot().skip(1).map(",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "existing objects are not marked as initial for a late handler",
        file: "informer-core/src/processor/cursor.rs",
        text: "is_in_initial_list: true }",
        becomes: "is_in_initial_list: false }",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a handler is synced before its replay",
        file: "informer-core/src/processor/cursor.rs",
        text: "        // I5: the replay first.\n",
        becomes: "        if std::mem::take(&mut self.replay_completes) {\n            \
                  return Some(Next::InitialComplete);\n        }\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "the store keeps deleted objects",
        file: "informer-factory/src/informer/pipeline.rs",
        text: "self.changes.push(Change::Remove(stored.key().clone()))",
        becomes: "drop(stored)",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "a recreated object counts as an update",
        file: "informer-factory/src/informer/pipeline.rs",
        text: "        if old.uid() != object.uid() && ",
        becomes: "        if old.ptr_eq(object) && ",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "only the first two events of a slice are passed on",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        self.store.apply(changes, ",
        becomes: "        let changes = changes.into_iter().take(2).collect();\n        self.store.apply(changes, ",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "an object that cannot be decoded is skipped silently",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        self.reporter.quarantine(&object);\n        Ok(None)\n",
        becomes: "        Ok(None)\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "the delete of a quarantined object is ignored",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "            return Ok(Some(Delta::Deleted(Deleted::missed(key, None))));\n",
        becomes: "            return Ok(None);\n",
    },
    Mutant {
        found_by: FoundBy::Simulation,
        name: "an expired watch is retried at the same version",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        if is_version_refused(&error) {\n",
        becomes: "        if error.is_expired() {\n            return Step::Later(Request::Watch, error);\n        }\n        \
                  if is_version_refused(&error) {\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--test", "processor_model"],
            name: "i1_every_reader_ends_with_the_true_state",
        },
        name: "a slow handler receives an older state of an object",
        file: "informer-core/src/processor/net_change.rs",
        text: "                garbage.push(Event::Resynced(skipped));\n                Self::One(Event::Updated { old, new: new.clone() })\n",
        becomes: "                garbage.push(Event::Resynced(new.clone()));\n                Self::One(Event::Updated { old, new: skipped })\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "delta_fifo::tests::i2_changes_of_a_key_share_one_entry_in_order",
        },
        name: "a key that is queued gets another entry",
        file: "informer-core/src/delta_fifo/state.rs",
        text: "key.hash_value() == hash && items[at(ticket)].key == *delta.key(),\n",
        becomes: "key.hash_value() == hash && items[at(ticket)].deltas.is_empty(),\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::streams::i3_no_event_can_be_read_before_the_store_has_it",
        },
        name: "handlers get events before the store has them",
        file: "informer-core/src/processor/shared.rs",
        text: "        commit();
        registry.list_complete |= guard.batch().completes_initial_list;
        if has_content {
            let is_syncing = |listener: &ProcessorListener| guard.has_resyncs() && listener.is_syncing();
            let any_is_syncing = registry.listeners.iter().any(|listener| is_syncing(listener));
            guard.set_any_wants_resyncs(any_is_syncing);
            for listener in &registry.listeners {
                let wants_resyncs = any_is_syncing && listener.is_syncing();
                guard.push_to(&listener.mailbox, wants_resyncs);
            }
            guard.finish();
        }
",
        becomes: "        registry.list_complete |= guard.batch().completes_initial_list;
        if has_content {
            let is_syncing = |listener: &ProcessorListener| guard.has_resyncs() && listener.is_syncing();
            let any_is_syncing = registry.listeners.iter().any(|listener| is_syncing(listener));
            guard.set_any_wants_resyncs(any_is_syncing);
            for listener in &registry.listeners {
                let wants_resyncs = any_is_syncing && listener.is_syncing();
                guard.push_to(&listener.mailbox, wants_resyncs);
            }
            guard.finish();
        }
        commit();
",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-factory",
            target: &["--test", "memory"],
            name: "relist::i4_unseen_recreation_is_a_delete_and_an_add",
        },
        name: "a recreated object is an update to handlers",
        file: "informer-factory/src/informer/pipeline.rs",
        text: "        if old.uid() != object.uid() && ",
        becomes: "        if old.ptr_eq(object) && ",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::streams::i5_late_stream_begins_with_existing_objects",
        },
        name: "a late handler lacks an existing object",
        file: "informer-core/src/processor/mod.rs",
        text: "snapshot().map(",
        becomes: "snapshot().skip(1).map(",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::streams::i6_stream_syncs_at_the_poll_after_its_initial_events",
        },
        name: "a registration is synced before its initial adds",
        file: "informer-core/src/processor/cursor.rs",
        text: "        // I5: the replay first.\n",
        becomes: "        if std::mem::take(&mut self.replay_completes) {\n            \
                  return Some(Next::InitialComplete);\n        }\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-store",
            target: &["--test", "store"],
            name: "i7_snapshot_and_its_results_do_not_change",
        },
        name: "an index answers for a snapshot from the newest state",
        file: "informer-store/src/index/handle.rs",
        text: "        self.get_from(&snapshot.state, value)\n",
        becomes: "        let _ = snapshot;\n        self.get_from(&self.shared.state.read(), value)\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::garbage::i8_coalesced_states_drop_without_lock",
        },
        name: "skipped objects are dropped under a lock",
        file: "informer-core/src/processor/shared_backlog.rs",
        text: "            self.coalesce(&mut sections, garbage);\n",
        becomes: "            self.coalesce(&mut sections, &mut Garbage::none());\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "delta_fifo::tests::i9_batch_that_empties_the_queue_has_the_watermark",
        },
        name: "the watermark does not wait for the queue",
        file: "informer-core/src/delta_fifo/state.rs",
        text: "            if self.items.is_empty() { self.take_watermark() } else { (None, Vec::new()) };\n",
        becomes: "            self.take_watermark();\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-reflector",
            target: &["--test", "reflector"],
            name: "quarantine::i10_undecodable_object_returns_with_a_valid_version",
        },
        name: "an undecodable object is not quarantined",
        file: "informer-reflector/src/reflector/watch.rs",
        text: "        self.reporter.quarantine(&object);\n        Ok(None)\n",
        becomes: "        Ok(None)\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::i11_backlog_has_one_entry_per_key_with_the_last_step",
        },
        name: "the backlog of a stuck handler grows without a bound",
        file: "informer-core/src/processor/inbox.rs",
        text: "        self.is_behind() || self.threshold.is_some_and(is_full)\n",
        becomes: "        self.is_behind() && self.threshold.is_some_and(is_full)\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "processor::tests::i12_panic_is_counted_and_later_events_are_delivered",
        },
        name: "a panic of a handler ends its task",
        file: "informer-core/src/processor/handler_task.rs",
        text: "Err(payload) => Called::Panicked(panic_message(payload)),
            };",
        becomes: "Err(payload) => std::panic::resume_unwind(payload),
            };",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-factory",
            target: &["--test", "memory"],
            name: "waiting::i9_version_wait_ends_reached_timed_out_or_stopped",
        },
        name: "a wait for a version ends before the store has it",
        file: "informer-factory/src/informer/wait.rs",
        text: "            Source::Whole(_) => watermark.is_at_least(resource_version),\n",
        becomes: "            Source::Whole(_) => watermark.is_comparable(),\n",
    },
    Mutant {
        found_by: FoundBy::Test {
            package: "informer-core",
            target: &["--lib"],
            name: "delta_fifo::tests::i12_closed_or_dropped_queue_ends_waits_for_sync",
        },
        name: "a dropped queue leaves its waiters waiting",
        file: "informer-core/src/delta_fifo/mod.rs",
        text: "        self.synced.cancel();\n",
        becomes: "",
    },
];
