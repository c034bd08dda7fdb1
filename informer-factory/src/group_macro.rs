//! [`group!`](crate::group): accessors for several kinds of one group.

/// Generates accessors on the factory for several kinds, as in `factory.cars().v2().wheels()`.
///
/// `#[derive(Informer)]` generates the accessors of a group with one kind, because the input of
/// each derive is only its own type. For a group with several kinds, set `no_accessor` on each
/// derive and list the kinds here. The kinds can be from any module or crate.
///
/// You choose all names: the macro generates the trait and the types, and a method for each name in
/// lower case (in the example: `cars`, `v1`, `engines`, `v2`, `wheels`). Do not give the group's
/// method the name of a method of [`SharedInformerFactory`](crate::SharedInformerFactory), such as
/// `core` or `start`, because the factory's own method would hide it.
///
/// ```
/// use informer_factory::{Informer, SharedInformerFactory};
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
///
/// #[derive(Informer, serde::Deserialize)]
/// #[informer(group = "cars.example.com", version = "v1", kind = "Engine", namespaced, no_accessor)]
/// pub struct Engine {
///     metadata: ObjectMeta,
/// }
///
/// #[derive(Informer, serde::Deserialize)]
/// #[informer(group = "cars.example.com", version = "v2", kind = "Wheel", namespaced, no_accessor)]
/// pub struct Wheel {
///     metadata: ObjectMeta,
/// }
///
/// informer_factory::group! {
///     pub trait CarInformers {
///         fn cars() -> Cars {
///             fn v1() -> CarsV1 { engines: Engine }
///             fn v2() -> CarsV2 { wheels: Wheel }
///         }
///     }
/// }
///
/// fn all(factory: &SharedInformerFactory) {
///     let (_engines, _wheels) = (factory.cars().v1().engines(), factory.cars().v2().wheels());
/// }
/// ```
#[macro_export]
macro_rules! group {
    (
        $(#[$attribute:meta])*
        $visibility:vis trait $informers:ident {
            fn $group:ident() -> $group_type:ident {
                $(fn $version:ident() -> $version_type:ident { $($accessor:ident: $kind:ty),+ $(,)? })+
            }
        }
    ) => {
        $(#[$attribute])*
        #[doc = ::core::concat!("Adds `", ::core::stringify!($group), "()` to the factory.")]
        #[allow(dead_code)]
        $visibility trait $informers {
            #[doc = ::core::concat!("Returns the informers of `", ::core::stringify!($group), "`.")]
            #[must_use]
            fn $group(&self) -> $group_type<'_>;
        }

        impl $informers for $crate::SharedInformerFactory {
            fn $group(&self) -> $group_type<'_> {
                $group_type { factory: self }
            }
        }

        #[doc = ::core::concat!("The informers of `", ::core::stringify!($group), "`, by version.")]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        $visibility struct $group_type<'a> {
            factory: &'a $crate::SharedInformerFactory,
        }

        #[allow(dead_code)]
        impl<'a> $group_type<'a> {
            $(
                #[doc = ::core::concat!("Returns the informers of `", ::core::stringify!($version), "`.")]
                #[must_use]
                $visibility fn $version(&self) -> $version_type<'a> {
                    $version_type { factory: self.factory }
                }
            )+
        }

        $(
            #[doc = ::core::concat!("The informers of `", ::core::stringify!($group), "` in the version `", ::core::stringify!($version), "`.")]
            #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
            $visibility struct $version_type<'a> {
                factory: &'a $crate::SharedInformerFactory,
            }

            #[allow(dead_code)]
            impl $version_type<'_> {
                $(
                    #[doc = ::core::concat!("Returns the shared informer of [`", ::core::stringify!($kind), "`]s, with its indexes.")]
                    #[must_use]
                    $visibility fn $accessor(&self) -> $crate::SharedIndexInformer<$kind> {
                        $crate::__private::shared_informer(self.factory)
                    }
                )+
            }
        )+
    };
}
