//! The key, name, namespace and states that a `Deleted` returns: client-go's table tests for
//! `DeletionHandlingObjectToName`.

use informer_core::{Cached, Deleted, ObjectKey, Uid};

fn object(key: &ObjectKey, uid: &str, value: u32) -> Cached<u32> {
    Cached::from_parts(key.clone(), "7".into(), Uid::from(uid), value)
}

#[test]
fn deletion_has_key_name_and_namespace() {
    let in_namespace = ObjectKey::namespaced("shop", "cart");
    let of_the_cluster = ObjectKey::cluster_scoped("cart");
    for (key, namespace) in [(in_namespace, Some("shop")), (of_the_cluster, None)] {
        let last = || object(&key, "some-uid", 1);
        let ways = [
            Deleted::exact(last()),
            Deleted::missed(key.clone(), Some(last())),
            Deleted::missed(key.clone(), None),
            Deleted::missed(key.clone(), None).after(last()),
        ];
        for deleted in ways {
            assert_eq!((deleted.key(), deleted.name(), deleted.namespace()), (&key, "cart", namespace));
        }
    }
}

#[test]
fn deletion_of_a_known_object_has_its_uid() {
    let key = ObjectKey::cluster_scoped("cart");
    let uid = |deleted: &Deleted<u32>| deleted.uid().map(ToString::to_string);
    assert_eq!(uid(&Deleted::exact(object(&key, "some-uid", 1))).as_deref(), Some("some-uid"));
    assert_eq!(uid(&Deleted::exact(object(&key, "", 1))), None);
    let missed = Deleted::missed(key.clone(), None);
    assert_eq!(uid(&missed), None);
    assert_eq!(uid(&missed.after(object(&key, "some-uid", 1))).as_deref(), Some("some-uid"));
}

#[test]
fn only_an_observed_deletion_has_the_exact_last_state() {
    let key = ObjectKey::cluster_scoped("cart");
    let (older, newer) = (object(&key, "u", 1), object(&key, "u", 2));
    let seen = Deleted::exact(newer.clone()).after(older.clone());
    assert!(seen.is_exact());
    assert_eq!(seen.last_known().map(|last| **last), Some(2), "the delete event carried a newer state");
    assert_eq!(seen.previous().map(|previous| **previous), Some(1));
    let missed = Deleted::missed(key, None).after(older);
    assert!(!missed.is_exact());
    assert_eq!(missed.last_known().map(|last| **last), Some(1), "the last state that handlers received");
}
