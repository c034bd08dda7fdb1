//! `cargo xtask tidy --sample SEED`: draws doc comments and messages at random, for a reader to
//! judge. A message is a string literal in a call such as `warn!(`.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::sources::Source;

const DOC_COMMENTS: usize = 100;
const MESSAGES: usize = 50;

/// After each of these texts in a source file, a message for users can follow.
const MESSAGE_CALLS: [&str; 13] = [
    "error!(",
    "warn!(",
    "info!(",
    "debug!(",
    "trace!(",
    "bail!(",
    "anyhow!(",
    "ensure!(",
    "panic!(",
    "#[error(",
    ".context(",
    "Error::new(",
    "eprintln!(",
];

/// The minimum length of a message in bytes. Placeholders such as `{error:#}` do not count. Shorter
/// literals are names of fields, or little more than placeholders.
const MIN_MESSAGE: usize = 12;

/// The maximum number of lines to read of a declaration, or of a call with a message.
const MAX_LINES: usize = 12;

/// The maximum number of lines of a file's header that are shown with a doc comment.
const MAX_HEADER_LINES: usize = 12;

/// The first words of lines that begin a type, a trait or an `impl` block.
const PARENTS: [&str; 5] = ["impl", "pub", "struct", "enum", "trait"];

/// A doc comment or a message, and its place in the sources.
#[derive(Hash)]
struct Text {
    place: String,
    text: String,
}

pub(crate) fn print(sources: &[Source], seed: u64) {
    let sources = || sources.iter().filter(|source| !source.is_test_file() && !source.is_generated());
    println!("# {DOC_COMMENTS} doc comments\n");
    draw(sources().flat_map(doc_comments).collect(), DOC_COMMENTS, seed);
    println!("# {MESSAGES} messages\n");
    draw(sources().flat_map(messages).collect(), MESSAGES, seed);
}

fn draw(mut texts: Vec<Text>, count: usize, seed: u64) {
    texts.sort_by_cached_key(|text| {
        let mut hasher = DefaultHasher::new();
        (seed, text).hash(&mut hasher);
        hasher.finish()
    });
    texts.iter().take(count).for_each(|Text { place, text }| println!("{place}\n{text}\n"));
}

/// Returns each block of doc comments with its declaration. Each text starts with the file's header
/// and, for a member, the documentation of its type.
fn doc_comments(source: &Source) -> Vec<Text> {
    let lines: Vec<_> = source.lines().filter(|(number, _)| !source.is_test(*number)).collect();
    let header = source.lines().map(|(_, line)| line).take_while(|line| line.starts_with("//!"));
    let header: Vec<&str> = header.take(MAX_HEADER_LINES).collect();
    let mut texts = Vec::new();
    let mut types: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut block: Vec<&str> = Vec::new();
    let (mut begun, mut parent) = ("", "");
    for (index, (number, line)) in lines.iter().enumerate() {
        if PARENTS.iter().any(|start| line.starts_with(start)) {
            begun = line;
        }
        // The brace is on a later line than `impl` if a `where` clause is between them.
        if line.ends_with('{') && !line.starts_with(' ') {
            parent = begun;
        }
        let is_member = line.starts_with(' ');
        let line = line.trim();
        // In `quote!`, an empty `///` line can stand between texts in `#[doc]` attributes.
        if line == "///" && block.is_empty() {
            continue;
        }
        if line.starts_with("///") || line.starts_with("//!") {
            block.push(line);
        } else if !block.is_empty() && !line.starts_with("#[") {
            let mut text = Vec::new();
            if !block[0].starts_with("//!") {
                text.extend(&header);
            }
            if is_member {
                text.extend(words(parent).filter_map(|word| types.get(word)).flatten());
                text.push(parent);
            } else if let Some(name) = type_name(line) {
                types.insert(name, block.iter().copied().take_while(|line| *line != "///").collect());
            }
            text.append(&mut block);
            let text = text.join("\n") + "\n" + &declaration(&lines[index..]);
            texts.push(Text { place: format!("{}:{number}", source.path.display()), text });
        }
    }
    texts
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

/// Returns the name of the type or trait that `line` declares.
fn type_name(line: &str) -> Option<&str> {
    words(line).skip_while(|word| !["struct", "enum", "trait"].contains(word)).nth(1)
}

/// Returns the first declaration in `lines`, in one line and without its body.
fn declaration(lines: &[(usize, &str)]) -> String {
    let mut text = String::new();
    for (_, line) in lines.iter().take(MAX_LINES) {
        text.push_str(line.trim());
        let is_open = text.matches('(').count() > text.matches(')').count();
        if !is_open && text.ends_with(['{', ';', ',', '}']) || text.is_empty() {
            break;
        }
        text.push(' ');
    }
    text
}

/// Returns the first message after each of [`MESSAGE_CALLS`], at most one for each line of code.
fn messages(source: &Source) -> Vec<Text> {
    let lines: Vec<_> = source.lines().filter(|(number, _)| !source.is_test(*number)).collect();
    let mut texts = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        let Some(start) = MESSAGE_CALLS.iter().filter_map(|call| line.find(call)).min() else { continue };
        if line.trim_start().starts_with("//") {
            continue;
        }
        let last = lines[index..].iter().position(|(_, line)| line.trim_end().ends_with(';'));
        let count = last.map_or(MAX_LINES, |last| MAX_LINES.min(last + 1));
        let call: Vec<_> = lines[index..].iter().take(count).map(|(_, line)| *line).collect();
        let literals = literals(&call.join("\n")[start..]);
        if let Some(text) = literals.into_iter().find(|literal| constant_bytes(literal) >= MIN_MESSAGE) {
            texts.push(Text { place: format!("{}:{number}", source.path.display()), text });
        }
    }
    texts
}

/// Returns the number of bytes outside of placeholders, such as `{error:#}`.
fn constant_bytes(literal: &str) -> usize {
    let mut pieces = literal.split('{');
    let before = pieces.next().map_or(0, str::len);
    let after = pieces.map(|piece| piece.split_once('}').map_or(piece, |(_, constant)| constant).len());
    before + after.sum::<usize>()
}

fn literals(code: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut letters = code.chars();
    while letters.by_ref().any(|letter| letter == '"') {
        let mut literal = String::new();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => break,
                '\\' => match letters.next() {
                    // The indentation of a continued line is not part of the text.
                    Some('\n') => {
                        let rest = letters.as_str().trim_start();
                        letters = rest.chars();
                    }
                    Some('n') => literal.push('\n'),
                    Some(escaped) => literal.push(escaped),
                    None => {}
                },
                letter => literal.push(letter),
            }
        }
        literals.push(literal);
    }
    literals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_comments_and_messages_are_drawn_with_their_places() {
        let text = "//! A file.\n\n/// B.\n/// More.\n#[must_use]\nfn b() {\n    bail!(\n        \"cannot read {x}: \\\n         \
                    try again\"\n    );\n    warn!(\"{last_error:#}\");\n    \
                    let path = root.join(\n        \"no message, but a path\",\n    );\n}\n";
        let source = Source::new("a/src/lib.rs", text);
        let docs: Vec<_> = doc_comments(&source).into_iter().map(|text| (text.place, text.text)).collect();
        assert_eq!(docs[1], ("a/src/lib.rs:6".into(), "//! A file.\n/// B.\n/// More.\nfn b() {".into()));
        let messages: Vec<_> = messages(&source).into_iter().map(|text| (text.place, text.text)).collect();
        assert_eq!(messages, [("a/src/lib.rs:7".into(), "cannot read {x}: try again".into())]);
    }

    #[test]
    fn members_are_drawn_with_their_type_and_declaration() {
        let text = "/// D.\n///\n/// More.\nstruct D {\n    /// E.\n    e: u8,\n}\n\nimpl D\nwhere\n    \
                    u8: Copy,\n{\n    /// F.\n    fn f(\n        g: u8,\n    ) -> u8 {\n    }\n}\n";
        let docs = doc_comments(&Source::new("a/src/lib.rs", text));
        assert_eq!(docs[1].text, "/// D.\nstruct D {\n/// E.\ne: u8,");
        assert_eq!(docs[2].text, "/// D.\nimpl D\n/// F.\nfn f( g: u8, ) -> u8 {");
    }
}
