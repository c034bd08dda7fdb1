//! Selectors: a selector that is formatted and parsed again keeps its meaning, and a selector selects the same objects
//! in the store of an informer as on a server.
#![no_main]

use std::collections::BTreeMap;

use informer_core::{SelectorError, parse_selector};
use informer_fuzz::{PODS, Server};
use kube::core::SelectorExt;
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SERVER: Server = Server::start();
}

fuzz_target!(|input: &[u8]| {
    let Some((how, text)) = input.split_first() else { return };
    if how & 1 == 1 {
        let (code, _) = SERVER.with(|server| server.list("fieldSelector", text));
        assert!(matches!(code, 200 | 400), "{code}");
        return;
    }
    let (code, listed) = SERVER.with(|server| server.list("labelSelector", text));
    assert!(matches!(code, 200 | 400), "{code}");
    let Ok(text) = str::from_utf8(text) else { return };
    let selector = match parse_selector(text) {
        Ok(selector) => selector,
        Err(SelectorError::Syntax { .. } | SelectorError::Unsupported { .. }) => return,
        Err(other) => panic!("{other}"),
    };
    let again = parse_selector(&selector.to_string()).expect("the text of a parsed selector is valid");
    for (_, labels) in PODS {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let labels: BTreeMap<_, _> = labels.collect();
        assert_eq!(selector.matches(&labels), again.matches(&labels));
    }
    assert_eq!(code, 200, "the server accepts the same selectors");
    let selected = PODS.iter().filter(|(_, labels)| {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        selector.matches(&labels.collect::<BTreeMap<_, _>>())
    });
    // The server has returned the first page of the list, and a page has two objects.
    assert!(selected.map(|(name, _)| *name).take(2).eq(listed.iter().map(String::as_str)));
});
