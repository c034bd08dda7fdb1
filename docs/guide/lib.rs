//! Compiles the Rust code blocks of the guide, and runs those without `no_run`, as documentation
//! tests: one module for each page.
//!
//! `cargo xtask tidy` checks that each page is here. Two READMEs are also here: that of the workspace,
//! because it belongs to no crate, and that of informer-macros, because its code uses crates that depend on
//! informer-macros.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../informer-macros/README.md")]
mod readme_of_the_derive {}

#[cfg(doctest)]
#[doc = include_str!("src/introduction.md")]
mod introduction {}

#[cfg(doctest)]
#[doc = include_str!("src/informers.md")]
mod informers {}

#[cfg(doctest)]
#[doc = include_str!("src/first-controller.md")]
mod first_controller {}

#[cfg(doctest)]
#[doc = include_str!("src/indexes.md")]
mod indexes {}

#[cfg(doctest)]
#[doc = include_str!("src/handlers.md")]
mod handlers {}

#[cfg(doctest)]
#[doc = include_str!("src/deletes.md")]
mod deletes {}

#[cfg(doctest)]
#[doc = include_str!("src/own-writes.md")]
mod own_writes {}

#[cfg(doctest)]
#[doc = include_str!("src/memory.md")]
mod memory {}

#[cfg(doctest)]
#[doc = include_str!("src/testing.md")]
mod testing {}

#[cfg(doctest)]
#[doc = include_str!("src/production.md")]
mod production {}

#[cfg(doctest)]
#[doc = include_str!("src/metrics.md")]
mod metrics {}

#[cfg(doctest)]
#[doc = include_str!("src/inspector.md")]
mod inspector {}

#[cfg(doctest)]
#[doc = include_str!("src/tuning.md")]
mod tuning {}

#[cfg(doctest)]
#[doc = include_str!("src/from-client-go.md")]
mod from_client_go {}

#[cfg(doctest)]
#[doc = include_str!("src/client-go-examples.md")]
mod client_go_examples {}

#[cfg(doctest)]
#[doc = include_str!("src/from-kube-runtime.md")]
mod from_kube_runtime {}

#[cfg(doctest)]
#[doc = include_str!("src/from-controller-runtime.md")]
mod from_controller_runtime {}

#[cfg(doctest)]
#[doc = include_str!("src/crates.md")]
mod crates {}

#[cfg(doctest)]
#[doc = include_str!("src/design.md")]
mod design {}
