//! The values that the server generates for new objects: UID, time, and a suffix for names.

use jiff::Timestamp;

/// The characters of generated names. As in Kubernetes, vowels are excluded to avoid words, and so
/// are the digits 0, 1 and 3, which look like vowels.
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The generated values of one write.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) uid: String,
    pub(crate) now: String,
    pub(crate) suffix: String,
}

impl Stamp {
    pub(crate) fn new(random: &mut fastrand::Rng, now: Timestamp) -> Self {
        Self { uid: uuid(random), now: in_seconds(now), suffix: suffix(random) }
    }
}

/// Formats a time as the API does, in whole seconds.
pub(crate) fn in_seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Builds a version 4 UUID.
pub(crate) fn uuid(random: &mut fastrand::Rng) -> String {
    let bits = (random.u128(..) & !(0xf000_u128 << 64) & !(0xc000_u128 << 48))
        | (0x4000_u128 << 64)
        | (0x8000_u128 << 48);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn suffix(random: &mut fastrand::Rng) -> String {
    (0..5).filter_map(|_| random.choice(NAME_CHARACTERS)).map(|byte| char::from(*byte)).collect()
}
