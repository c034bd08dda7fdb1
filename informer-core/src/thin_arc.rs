//! [`ThinArc`]: a reference-counted pointer of one word to an object of any type. This file has all
//! `unsafe` code of this workspace.
//!
//! An `Arc<dyn Any>` has two words, and reads a vtable to find the object. Here, the address of the
//! type's functions is in the allocation. This makes lookups in a store 1.2 to 1.5 times as fast
//! (`cargo bench -p informer-store -- "get by key"`). A `Box` in an `Arc` has one word too, but
//! takes two allocations.

use std::any::TypeId;
use std::ops::Deref;
use std::process::abort;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::handle::{Identity, Kind};

/// A shared pointer to an object of any type. It dereferences to the object's identity: key,
/// resource version and UID.
pub(crate) struct ThinArc {
    // The start of an `Allocation`. Each `ThinArc` counts as one reference to the allocation.
    start: NonNull<Start>,
}

/// The start of each allocation. Its layout does not depend on the object's type.
// `repr(C)` keeps the fields in this order: a lookup reads the reference count and the key, which is
// the first field of the identity, so both are close together, often in one cache line.
#[repr(C)]
struct Start {
    references: AtomicU32,
    kind: Kind,
    object_type: &'static ObjectType,
    identity: Identity,
}

// `repr(C)` puts the start at the address of the allocation.
#[repr(C)]
struct Allocation<O> {
    start: Start,
    object: O,
}

/// The functions that depend on the type of the object.
struct ObjectType {
    id: fn() -> TypeId,
    /// Drops the content of an [`Allocation`], and frees its memory.
    ///
    /// # Safety
    /// The argument is the start of an allocation whose object has the type that this `ObjectType`
    /// describes. There is no other pointer to the allocation.
    free: unsafe fn(NonNull<Start>),
}

/// The number of references above which a clone aborts the program, as for `Arc`.
// An overflow would free the object while it is in use. This many pointers take 16 GiB.
const MAX_REFERENCES: u32 = u32::MAX / 2;

// Checks that identities are `Send` and `Sync`, as the implementations of both traits below require.
const _: () = {
    const fn requires<T: Send + Sync>() {}
    requires::<Identity>();
};

impl ThinArc {
    /// Moves an object, its key, its resource version and its UID to the heap.
    pub(crate) fn new<O: Send + Sync + 'static>(kind: Kind, identity: Identity, object: O) -> Self {
        let object_type = &ObjectType { id: TypeId::of::<O>, free: free::<O> };
        let start = Start { references: AtomicU32::new(1), kind, object_type, identity };
        let allocation = Box::leak(Box::new(Allocation { start, object }));
        Self { start: NonNull::from(allocation).cast() }
    }

    #[inline]
    fn start(&self) -> &Start {
        // SAFETY: the allocation lives as long as `self`, which counts as a reference. Mutable references
        // into the allocation exist only while its only `ThinArc` is mutably borrowed.
        unsafe { self.start.as_ref() }
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.start().kind
    }

    /// Returns the address of the object if its type is `T`.
    fn address<T: 'static>(&self) -> Option<NonNull<T>> {
        if (self.start().object_type.id)() != TypeId::of::<T>() {
            return None;
        }
        let allocation = self.start.cast::<Allocation<T>>().as_ptr();
        // SAFETY: the type id shows that `new` created this allocation as an `Allocation<T>`, so the
        // field is within it. Only an address is computed, and it is not null.
        Some(unsafe { NonNull::new_unchecked(&raw mut (*allocation).object) })
    }

    /// Returns the object if its type is `T`.
    pub(crate) fn object<T: 'static>(&self) -> Option<&T> {
        // SAFETY: as in `start`.
        self.address().map(|address| unsafe { address.as_ref() })
    }

    /// Returns the object if its type is `T` and there is no other reference.
    pub(crate) fn object_mut<T: 'static>(&mut self) -> Option<&mut T> {
        // SAFETY: `self` is the only reference, and it is mutably borrowed.
        self.address().filter(|_| self.is_unique()).map(|mut address| unsafe { address.as_mut() })
    }

    /// Returns the key, resource version and UID of the object if there is no other reference.
    pub(crate) fn identity_mut(&mut self) -> Option<&mut Identity> {
        // SAFETY: `self` is the only reference, and it is mutably borrowed. The result does not
        // include the reference count.
        self.is_unique().then(|| unsafe { &mut (*self.start.as_ptr()).identity })
    }

    pub(crate) fn is_unique(&self) -> bool {
        // Acquire: pairs with the release in `drop`, so that earlier uses by other threads have ended.
        self.start().references.load(Ordering::Acquire) == 1
    }

    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        self.start == other.start
    }
}

/// Drops the content of an [`Allocation`], and frees its memory.
///
/// # Safety
/// `start` is the start of an `Allocation<O>`. There is no other pointer to this allocation.
unsafe fn free<O>(start: NonNull<Start>) {
    // SAFETY: the caller guarantees that `new` created this allocation, from a `Box` with this type, and
    // that no other pointer to it is left.
    drop(unsafe { Box::from_raw(start.cast::<Allocation<O>>().as_ptr()) });
}

impl Deref for ThinArc {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.start().identity
    }
}

impl Clone for ThinArc {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: `self` exists, so the allocation cannot be freed meanwhile.
        if self.start().references.fetch_add(1, Ordering::Relaxed) > MAX_REFERENCES {
            abort();
        }
        Self { start: self.start }
    }
}

impl Drop for ThinArc {
    #[inline]
    fn drop(&mut self) {
        let start = self.start();
        // Release, and acquire for the last reference: all uses end before the allocation is freed.
        if start.references.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        fence(Ordering::Acquire);
        let free = start.object_type.free;
        // SAFETY: `new` stored the function for this type, and this was the last reference.
        unsafe { free(self.start) };
    }
}

// SAFETY: as for `Arc`: a `ThinArc` gives shared access to identity and object on each thread, and the
// last `ThinArc` drops them on its thread. Identity and object are `Send` and `Sync`: the check above
// requires this of the identity, and `new` of the object.
unsafe impl Send for ThinArc {}
// SAFETY: as for `Send`.
unsafe impl Sync for ThinArc {}

// `cargo xtask miri` runs these tests in Miri, which finds undefined behavior, data races and leaks.
#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::{ObjectKey, ResourceVersion, Uid};

    fn identity(name: &str) -> Identity {
        let (key, resource_version) = (ObjectKey::cluster_scoped(name), ResourceVersion::empty());
        Identity { key, resource_version, uid: Uid::default() }
    }

    fn pointer<O: Send + Sync + 'static>(object: O) -> ThinArc {
        ThinArc::new(Kind::Decoded, identity("a"), object)
    }

    #[test]
    fn object_is_returned_only_as_its_own_type() {
        let mut number = pointer(7_u64);
        assert_eq!((number.object::<u64>(), number.object::<i64>()), (Some(&7), None));
        assert!(number.object_mut::<[u8; 8]>().is_none());
        assert_eq!(number.object_mut::<u64>(), Some(&mut 7));
    }

    #[test]
    fn pointer_has_one_word() {
        assert_eq!(size_of::<Option<ThinArc>>(), size_of::<usize>());
    }

    #[test]
    fn objects_of_any_size_and_alignment_are_stored() {
        #[repr(align(128))]
        struct Aligned(u8);

        let (empty, aligned) = (pointer(()), pointer(Aligned(3)));
        assert_eq!((empty.object(), aligned.key.as_str()), (Some(&()), "a"));
        let object = aligned.object::<Aligned>().expect("the type");
        assert_eq!(((&raw const *object).addr() % 128, object.0), (0, 3));
    }

    #[test]
    fn object_and_identity_of_a_single_pointer_change() {
        let mut only = pointer("old".to_owned());
        "new".clone_into(only.object_mut().expect("one pointer"));
        *only.identity_mut().expect("one pointer") = identity("b");
        assert_eq!((only.object::<String>().expect("a string").as_str(), only.key.as_str()), ("new", "b"));
    }

    #[test]
    fn object_and_identity_of_two_pointers_do_not_change() {
        let mut first = pointer(1);
        let second = first.clone();
        assert!(first.ptr_eq(&second) && !first.ptr_eq(&pointer(1)));
        assert!(first.object_mut::<i32>().is_none() && first.identity_mut().is_none());
        drop(second);
        assert!(first.object_mut::<i32>().is_some() && first.identity_mut().is_some());
    }

    #[test]
    fn last_of_many_threads_frees_object_and_identity() {
        let observer = Arc::new(());
        let shared = pointer(Arc::clone(&observer));
        let text = shared.key.clone();
        let threads = [(); 4].map(|()| {
            let own = shared.clone();
            thread::spawn(move || {
                let copies = [(); 3].map(|()| own.clone());
                copies.iter().all(|copy| copy.key.as_str() == "a" && copy.object::<Arc<()>>().is_some())
            })
        });
        drop(shared);
        assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
        assert_eq!((Arc::strong_count(&observer), text.as_str()), (1, "a"));
    }

    #[test]
    fn change_by_the_last_owner_follows_uses_by_other_threads() {
        let mut shared = pointer(1_u32);
        let other = shared.clone();
        let reader = thread::spawn(move || other.object::<u32>().copied());
        loop {
            if let Some(number) = shared.object_mut::<u32>() {
                *number = 2;
                break;
            }
            thread::yield_now();
        }
        assert_eq!(reader.join().expect("no panic"), Some(1));
    }

    #[test]
    fn panic_of_a_destructor_leaks_nothing() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("as planned");
            }
        }

        let object = pointer(Panics);
        let caught = catch_unwind(AssertUnwindSafe(|| drop(object)));
        assert!(caught.is_err());
    }
}
