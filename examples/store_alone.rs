//! The store alone, as a cache with secondary indexes, without API server, Kubernetes types or async.
//!
//! ```text
//! cargo run --example store_alone
//! ```

use std::error::Error;
use std::time::Duration;

use informer_factory::informer_store::{Change, ExpirationCache, store};
use informer_factory::{Cached, ObjectKey, ResourceVersion, Uid};

/// A store can have objects of any type.
#[derive(Clone, Debug)]
struct Book {
    title: &'static str,
    authors: Vec<&'static str>,
    year: u16,
}

/// Creates an object with the key `shelf/number`. A key is a name with an optional namespace.
fn shelved(shelf: &str, number: &str, book: Book) -> Cached<Book> {
    Cached::from_parts(ObjectKey::namespaced(shelf, number), ResourceVersion::empty(), Uid::default(), book)
}

fn main() -> Result<(), Box<dyn Error>> {
    // A store has one writer and any number of readers.
    let (mut writer, books) = store::<Book>();
    // Index values are typed, and an object can have several.
    let by_author = books.add_index("author", |book: &Book| book.authors.clone())?;
    let by_decade = books.add_index("decade", |book: &Book| [book.year / 10 * 10])?;

    let [book, sequel, manual] = [
        Book { title: "Good Omens", authors: vec!["Pratchett", "Gaiman"], year: 1990 },
        Book { title: "Mort", authors: vec!["Pratchett"], year: 1987 },
        Book { title: "The C Programming Language", authors: vec!["Kernighan", "Ritchie"], year: 1978 },
    ];
    // A transaction changes objects and indexes in one step.
    writer.transaction(
        vec![
            Change::Put(shelved("fiction", "1", book)),
            Change::Put(shelved("fiction", "2", sequel)),
            Change::Put(shelved("computing", "1", manual)),
        ],
        None,
    );
    for book in &by_author.get("Pratchett") {
        println!("{}: {} ({})", book.key(), book.title, book.year);
    }
    assert_eq!(by_author.get("Pratchett").len(), 2);
    assert_eq!(books.in_namespace("computing").len(), 1);

    // A snapshot keeps one state for any number of queries, and blocks no writer.
    let before = books.snapshot();
    writer.remove(&ObjectKey::namespaced("fiction", "2"));
    assert_eq!((before.len(), books.len()), (3, 2));
    assert_eq!((by_decade.get_in(&before, &1980).len(), by_decade.get(&1980).len()), (1, 0));

    // Index functions can fail. The object is stored anyway, and the failure is listed.
    books.try_add_index("initial", |book: &Book| match book.title.chars().next() {
        Some('T') => Err("titles are sorted without their article"),
        initial => Ok(initial),
    })?;
    for failure in books.index_failures() {
        println!("{failure}");
    }
    assert_eq!(books.index_failures().len(), 1);

    // For sources without change notifications there is a cache whose objects expire.
    let fresh = ExpirationCache::<Book>::new(Duration::from_secs(60));
    fresh.put(shelved("fiction", "3", Book { title: "Stardust", authors: vec!["Gaiman"], year: 1999 }));
    assert!(fresh.get(&ObjectKey::namespaced("fiction", "3")).is_some());
    Ok(())
}
