//! Continue tokens of the simulator: no token causes a panic, and a list with an accepted token
//! returns only existing objects.
#![no_main]

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use informer_fuzz::{PODS, Server};
use libfuzzer_sys::fuzz_target;

thread_local! {
    static SERVER: Server = Server::start();
}

fuzz_target!(|input: &[u8]| {
    let Some((how, text)) = input.split_first() else { return };
    // Either the raw text, or the text as the content of a well-formed token.
    let token = if how & 1 == 1 { BASE64_URL_SAFE_NO_PAD.encode(text).into_bytes() } else { text.to_vec() };
    let (code, names) = SERVER.with(|server| server.list("continue", &token));
    assert!(matches!(code, 200 | 400 | 410), "{code}");
    assert!(names.len() <= 2 && names.is_sorted());
    assert!(names.iter().all(|name| PODS.iter().any(|(known, _)| known == name)));
});
