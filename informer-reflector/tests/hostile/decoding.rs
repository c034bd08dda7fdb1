//! The memory that decoders use for rejected objects.

use informer_core::WatchEvent;
use informer_reflector::{PrunePaths, WatchDecoder};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::meter::Meter;

#[test]
fn decoding_needs_at_most_ten_times_the_size_of_an_object() {
    let meter = Meter::start();
    let unknown = r#"{"a":[{"b":{"c":[1,2,3]}}]},"#.repeat(700_000);
    let line =
        format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"a"}},"spec":[{unknown}0],"data":7}}}}"#)
            + "\n";
    let limit = 24 * 1024 * 1024;
    assert!((19_000_000..limit).contains(&line.len()), "{}", line.len());
    meter.reset();
    let mut decoder = WatchDecoder::<ConfigMap>::new(PrunePaths::default()).max_object_size(limit);
    for piece in line.as_bytes().chunks(64 * 1024) {
        let events = decoder.push(piece).expect("valid JSON");
        assert!(events.iter().all(|event| matches!(event, WatchEvent::RejectedObject { .. })));
    }
    let peak = meter.peak();
    println!("a line of {} bytes, at most {peak} in use", line.len());
    assert!(peak <= 10 * limit, "{peak} bytes");
}
