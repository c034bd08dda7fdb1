//! Formats durations as `kubectl get` prints ages.

/// Formats a duration like apimachinery's `duration.HumanDuration`.
pub(super) fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |value: i64, big: i64, unit: &str, small: i64, small_unit: &str| {
        let rest = value % big / small;
        let whole = value / big;
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small_unit}") }
    };
    match seconds {
        i64::MIN..-1 => "<invalid>".to_owned(),
        // Two clocks can differ by a second.
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    //! Tests of the format.

    use super::human_duration;

    #[test]
    fn human_duration_matches_kubectl() {
        let cases = [
            (i64::MIN, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (5, "5s"),
            (119, "119s"),
            (185, "3m5s"),
            (180, "3m"),
            (3_600, "60m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (200_000, "2d7h"),
            (1_000_000, "11d"),
            (63_072_000 + 86_400, "2y1d"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(human_duration(seconds), expected);
        }
    }
}
