//! Merges tables of protobuf messages, in the format of `kube-messages/src/messages.txt`.
//!
//! A table has three sorts of lines. A line that begins with `@` is a kind with the name of its
//! message. A line that begins with a number is a field. Any other line begins a message, and the
//! lines of its fields follow.
//!
//! A version of Kubernetes can lack kinds and fields that earlier versions have, but no version
//! uses a field's number for another field. So one table has the messages of all versions.

use std::collections::BTreeMap;

/// Maps the line of each kind or message to the lines of its fields, by field number. A kind has no
/// fields.
type Table<'a> = BTreeMap<&'a str, BTreeMap<u64, &'a str>>;

/// Merges two tables. If both have a field, the result has the line of `newer`.
pub(super) fn merge(older: &str, newer: &str) -> String {
    let mut merged = parse(older);
    for (header, fields) in parse(newer) {
        merged.entry(header).or_default().extend(fields);
    }
    let lines =
        merged.into_iter().flat_map(|(header, fields)| [header].into_iter().chain(fields.into_values()));
    lines.map(|line| format!("{line}\n")).collect()
}

fn parse(text: &str) -> Table<'_> {
    let mut table = Table::new();
    let mut header = "";
    for line in text.lines() {
        let number = line.split(' ').next().and_then(|word| word.parse().ok());
        if let Some(number) = number {
            table.entry(header).or_default().insert(number, line);
        } else {
            header = line;
            table.entry(header).or_default();
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_only_the_older_version_has_are_kept() {
        let older =
            "@v1 Pod a.Pod\n@v1alpha1 Gone a.Gone\na.Gone\n1 gone s\na.Pod\n1 name s\n3 old s\n9 spec s\n";
        let newer = "@v1 Pod a.Pod\na.Pod\n1 name *s\n2 new s\n9 spec s\na.Zone\n";
        let merged = "@v1 Pod a.Pod\n@v1alpha1 Gone a.Gone\na.Gone\n1 gone s\na.Pod\n1 name *s\n2 new s\n3 old s\n\
                      9 spec s\na.Zone\n";
        assert_eq!(merge(older, newer), merged);
        assert_eq!(merge(merged, newer), merged);
    }
}
