//! The parts that need the types of Kubernetes and kube, except `DecodeBytes::metadata`. The
//! feature `kubernetes` compiles them.

mod continue_tokens;
mod error;
mod lister_watcher;
mod objects;
mod selector;

pub use continue_tokens::ContinueTokens;
pub use error::{ListWatchError, SelectorError};
#[doc(hidden)]
pub use lister_watcher::{AnySource, any_in_namespace};
pub use lister_watcher::{
    Bookmark, InNamespace, ListEnd, ListOptions, ListPart, ListStream, ListerWatcher, RejectedKind,
    RejectedObject, ResourceVersionMatch, WatchEvent, WatchOptions, WatchStream,
};
pub use selector::parse_selector;
