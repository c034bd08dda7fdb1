//! Computes latencies from the times at which events were sent and received.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail};

/// When each event was sent or received, by resource version, in nanoseconds of the monotonic
/// clock. For an event that was sent late, when it was due.
pub(crate) type Times = HashMap<u64, u64>;

pub(crate) fn by_version(versions: &[u64], times: &[u64]) -> Times {
    versions.iter().copied().zip(times.iter().copied()).collect()
}

/// Reads a client's file: pairs of a resource version and the time of its receipt, as little-endian
/// numbers of eight bytes.
pub(crate) fn read(path: &Path) -> anyhow::Result<Times> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || !numbers.len().is_multiple_of(2) {
        bail!("the client's file of event times, {}, is incomplete", path.display());
    }
    let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    Ok(numbers.chunks_exact(2).map(|pair| (number(&pair[0]), number(&pair[1]))).collect())
}

/// Returns percentiles of the latency in seconds, and the share of received events, with names such
/// as `latency.1000.p99` for a `rate` of 1,000.
pub(crate) fn figures(rate: u32, sent: &Times, received: &Times) -> anyhow::Result<Vec<(String, f64)>> {
    let mut latencies: Vec<u64> = sent
        .iter()
        .filter_map(|(version, sent)| Some(received.get(version)?.saturating_sub(*sent)))
        .collect();
    latencies.sort_unstable();
    let last = latencies
        .len()
        .checked_sub(1)
        .with_context(|| format!("the client has received no event at {rate} events per second"))?;
    let percentile = |share: f64| latencies[(last as f64 * share).round() as usize] as f64 / 1e9;
    let named = |name: &str, value| (format!("latency.{rate}.{name}"), value);
    Ok(vec![
        named("p50", percentile(0.5)),
        named("p99", percentile(0.99)),
        named("p99.9", percentile(0.999)),
        // A slow client can skip states of an object that a newer state has already replaced.
        named("received", latencies.len() as f64 / sent.len() as f64),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_is_that_of_received_events() {
        let sent = by_version(&[5, 6, 7, 8], &[1_000, 2_000, 3_000, 4_000]);
        let received = by_version(&[5, 6, 8], &[1_500, 2_100, 4_200]);
        let figures = figures(10, &sent, &received).expect("events");
        assert_eq!(figures[0], ("latency.10.p50".to_owned(), 2e-7));
        assert_eq!(figures[2], ("latency.10.p99.9".to_owned(), 5e-7));
        assert_eq!(figures[3].1.to_string(), "0.75");
    }
}
