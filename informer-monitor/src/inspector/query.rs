//! [`Query`]: the search text of the page.
//!
//! Terms are separated by spaces, and an object must match all of them. Spaces between quotes
//! belong to a term: `field:status.reason="No space"`.
//!
//! | term | matches objects |
//! |---|---|
//! | `web` | whose key contains `web`, in upper or lower case |
//! | `label:app=web`, `label:app` | with this label, with or without a value |
//! | `index:node=node-1` | that have this value in the index `node` |
//! | `field:spec.nodeName=node-1`, `field:spec.nodeName` | with this field, with or without a value |

use std::collections::BTreeMap;

use serde_json::Value;

use super::mask::Mask;
use super::path::Path;

#[derive(Debug, Default)]
pub(super) struct Query {
    words: Vec<String>,
    /// The index terms: the name of an index, and the value to find in it.
    pub(super) indexes: Vec<(String, String)>,
    labels: Vec<(String, Option<String>)>,
    fields: Vec<(Path, Option<String>)>,
}

impl Query {
    /// Parses a search text.
    ///
    /// # Errors
    /// A message for the user of the page, if a term is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for term in terms(text) {
            let Some((kind, rest)) = term.split_once(':') else {
                query.words.push(term);
                continue;
            };
            match kind {
                "label" => query.labels.push(named(&term, rest)?),
                "index" => match named(&term, rest)? {
                    (name, Some(value)) => query.indexes.push((name, value)),
                    (name, None) => return Err(format!("{term} has no value: write index:{name}=VALUE")),
                },
                "field" => {
                    let (path, value) = named(&term, rest)?;
                    let path = Path::parse(&path).map_err(|error| error.to_string())?;
                    query.fields.push((path, value));
                }
                // Keys of some kinds contain colons, such as `system:node`.
                _ => query.words.push(term),
            }
        }
        Ok(query)
    }

    /// Returns whether a search must read the objects, which takes longer than comparing keys.
    pub(super) fn reads_objects(&self) -> bool {
        self.has_labels() || self.has_fields()
    }

    pub(super) fn has_labels(&self) -> bool {
        !self.labels.is_empty()
    }

    pub(super) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    pub(super) fn matches_key(&self, key: &str) -> bool {
        self.words.iter().all(|word| {
            key.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        })
    }

    /// Returns whether an object with these labels matches all label terms of this query. A term
    /// for a masked label never matches, not even without a value.
    pub(super) fn matches_labels(&self, labels: &BTreeMap<String, String>, mask: &Mask) -> bool {
        self.labels.iter().all(|(name, value)| {
            !mask.hides_label(name)
                && labels.get(name).is_some_and(|own| value.as_ref().is_none_or(|value| own == value))
        })
    }

    /// Returns whether `object` matches all field terms of this query. The caller must mask
    /// `object` first, or a search could find hidden values.
    pub(super) fn matches_fields(&self, object: &Value) -> bool {
        self.fields.iter().all(|(path, value)| {
            path.any(object, &|found| value.as_ref().is_none_or(|value| is_text(found, value)))
        })
    }
}

fn is_text(found: &Value, text: &str) -> bool {
    match found {
        Value::String(own) => own == text,
        Value::Bool(flag) => flag.to_string() == text,
        Value::Number(number) => number.to_string() == text,
        _ => false,
    }
}

/// Splits `rest`, the part of `term` after the colon, into a name and an optional value. An equals
/// sign in brackets belongs to the name.
fn named(term: &str, rest: &str) -> Result<(String, Option<String>), String> {
    let mut is_in_brackets = false;
    let parts = rest.split_once(|character: char| {
        match character {
            '[' => is_in_brackets = true,
            ']' => is_in_brackets = false,
            _ => {}
        }
        character == '=' && !is_in_brackets
    });
    let (name, value) = parts.map_or((rest, None), |(name, value)| (name, Some(value.to_owned())));
    if name.is_empty() {
        return Err(format!("{term} has no name after the colon"));
    }
    Ok((name.to_owned(), value))
}

/// Splits a search text into terms, at spaces outside of quotes, and removes the quotes.
fn terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            space if space.is_whitespace() && !is_quoted => terms.push(String::new()),
            other => terms.last_mut().into_iter().for_each(|term| term.push(other)),
        }
    }
    terms.retain(|term| !term.is_empty());
    terms
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text).expect("a query")
    }

    #[test]
    fn all_words_must_occur_in_the_key() {
        assert!(query("").matches_key("shop/web-1"));
        assert!(query("SHOP/ web").matches_key("shop/web-1"));
        assert!(!query("shop/ db").matches_key("shop/web-1"));
        assert!(query("system:node").matches_key("system:node-proxier"));
    }

    #[test]
    fn fields_match_values_of_all_simple_types() {
        let object = json!({
            "spec": { "replicas": 3, "paused": true, "containers": [{ "image": "a:1" }] },
            "status": { "reason": "No space" },
            "metadata": { "annotations": { "a.b/c=d": "1", "a.b/list": "[1]" } },
        });
        for (text, is_match) in [
            ("field:spec.replicas=3 field:spec.paused=true", true),
            ("field:spec.containers.image=a:1", true),
            ("field:status.reason=\"No space\"", true),
            ("field:spec.replicas", true),
            ("field:metadata.annotations[a.b/c=d]=1", true),
            ("field:metadata.annotations[a.b/list]=[1]", true),
            ("field:spec.replicas=4", false),
            ("field:spec.containers=a:1", false),
            ("field:spec.missing", false),
        ] {
            assert_eq!(query(text).matches_fields(&object), is_match, "{text}");
        }
    }

    #[test]
    fn labels_match_with_and_without_value() {
        let labels = [("app".to_owned(), "web".to_owned())].into();
        let mask = Mask::default();
        assert!(query("label:app label:app=web").matches_labels(&labels, &mask));
        assert!(!query("label:app=db").matches_labels(&labels, &mask));
        assert!(!query("label:tier").matches_labels(&labels, &mask));
        let mut mask = Mask::default();
        mask.add("metadata.labels.app").expect("a path");
        assert!(!query("label:app").matches_labels(&labels, &mask));
    }

    #[test]
    fn invalid_terms_are_errors_with_a_remedy() {
        for (text, part) in [
            ("index:node", "write index:node=VALUE"),
            ("label:=web", "no name"),
            ("field:spec.containers[0].image=a", "in lists, write"),
        ] {
            assert!(Query::parse(text).expect_err(text).contains(part), "{text}");
        }
    }

    #[test]
    fn remedy_for_an_index_works_in_a_search() {
        let error = Query::parse("field:data[0]=x").expect_err("an index");
        assert!(error.contains("data['0']"), "{error}");
        assert!(query("field:data['0']=x").matches_fields(&json!({ "data": { "0": "x" } })));
    }
}
