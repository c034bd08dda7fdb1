//! 100 informers with 100,000 objects: pages of a search are complete and in order.

use std::sync::Arc;

use informer_factory::{InformerOptions, SharedIndexInformer};
use informer_testing::MemorySource;
use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

const INFORMERS: usize = 100;
/// The number of objects of the first informer; each of the other 99 informers has 100 objects.
const LARGE: usize = 100_000 - (INFORMERS - 1) * SMALL;
const SMALL: usize = 100;

fn map(number: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some(format!("team-{}", number % 7));
    map.metadata.name = Some(format!("{}-{number:06}", if number.is_multiple_of(10) { "web" } else { "db" }));
    let colour = if number.is_multiple_of(100) { "red" } else { "green" };
    map.metadata.labels = Some([("colour".to_owned(), colour.to_owned())].into());
    map.data = Some([("number".to_owned(), (number % 1_000).to_string())].into());
    map
}

/// Adds an informer with `count` objects in memory to the factory.
fn informer(factory: &SharedInformerFactory, number: usize, count: usize) -> SharedIndexInformer<ConfigMap> {
    let source = MemorySource::new(format!("configmaps of source {number:03}"));
    for object in 0..count {
        source.create(map(object)).expect("a new object");
    }
    // Each scope of the factory has its own informer.
    let scope = factory.in_namespace(&format!("source-{number}"));
    let make = |_, options: InformerOptions<ConfigMap>| SharedIndexInformer::new(Arc::new(source), options);
    scope.informer_with::<ConfigMap>(make)
}

/// Requests all pages of a search, and returns the keys and the number of matches in the first page.
async fn all_pages(router: &Router, informer: &str, query: &str, limit: &str) -> (Vec<String>, Option<u64>) {
    let (mut found, mut matches, mut after) = (Vec::new(), None, None::<String>);
    loop {
        let mut parameters = vec![("informer", informer), ("query", query), ("limit", limit)];
        parameters.extend(after.as_deref().map(|after| ("after", after)));
        let page = document(router, "objects", &parameters).await;
        let keys = keys(&page);
        assert!(keys.len() <= limit.parse().expect("a number"));
        matches = matches.or(page["matches"].as_u64());
        found.extend(keys.into_iter().map(str::to_owned));
        match page["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return (found, matches),
        }
    }
}

fn expected(is_match: impl Fn(usize) -> bool) -> Vec<String> {
    let maps = (0..LARGE).filter(|number| is_match(*number)).map(map).map(|map| map.metadata);
    let mut keys: Vec<_> = maps
        .map(|metadata| {
            format!("{}/{}", metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default())
        })
        .collect();
    keys.sort();
    keys
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_100_informers_with_100000_objects_are_complete() {
    let (_simulator, factory) = cluster().await;
    let sizes = std::iter::once(LARGE).chain(std::iter::repeat_n(SMALL, INFORMERS - 1));
    let informers: Vec<_> =
        sizes.enumerate().map(|(number, count)| informer(&factory, number, count)).collect();
    let inspector = informers.iter().fold(Inspector::new(&factory), Inspector::objects);
    let router = router(inspector);
    start(&factory).await;

    let overview = document(&router, "overview", &[]).await;
    let rows = overview["informers"].as_array().expect("informers");
    let objects: u64 = rows.iter().filter_map(|row| row["objects"].as_u64()).sum();
    assert_eq!((rows.len(), objects), (INFORMERS, 100_000));
    let large = "configmaps of source 000 (ConfigMap)";

    let (web, matches) = all_pages(&router, large, "WEB-", "500").await;
    assert_eq!(web, expected(|number| number % 10 == 0));
    assert_eq!(matches, Some(web.len() as u64));
    let (red, matches) = all_pages(&router, large, "index:namespace=team-3 label:colour=red", "17").await;
    assert_eq!(red, expected(|number| number % 7 == 3 && number % 100 == 0));
    assert_eq!(matches, None, "labels are read only until a page is full");
    let (field, _) = all_pages(&router, large, "web- field:data.number=500", "100").await;
    assert_eq!(field, expected(|number| number % 1_000 == 500));
    let (none, _) = all_pages(&router, large, "no-such-object", "100").await;
    assert!(none.is_empty());
}
