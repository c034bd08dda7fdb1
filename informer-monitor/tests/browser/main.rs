//! The inspector in a real headless browser: `cargo xtask inspector` runs these tests.
//!
//! The tests load the page, wait for changes of the page, search, and check that secrets are
//! masked. They also use the page on a narrow screen and with the keyboard alone.

mod pictures;
mod webdriver;
mod world;

use webdriver::{ARROW_DOWN, ARROW_UP, Browser, ENTER, ESCAPE, TAB};
use world::World;

const WIDE: (u32, u32) = (1280, 900);
const NARROW: (u32, u32) = (360, 740);

/// A JavaScript expression for the keys of all results, separated by spaces.
const RESULTS: &str =
    "[...document.querySelectorAll('#results a .key')].map((row) => row.textContent).join(' ')";

async fn open((width, height): (u32, u32), url: &str) -> Browser {
    let browser = Browser::start(width, height).await;
    browser.open(url).await;
    browser.until("document.getElementById('connection').dataset.state === 'connected'").await;
    browser
}

/// Opens the page of an informer, and waits for its objects.
async fn open_informer(browser: &Browser, id: &str) {
    browser.eval(&format!("void (location.hash = new URLSearchParams({{ informer: '{id}' }}))")).await;
    browser.until("document.querySelector('section.objects')?.dataset.loads >= 1").await;
}

/// Sets the search text, and waits for the results of that search.
async fn search(browser: &Browser, text: &str, results: &str) {
    let set = "const input = document.getElementById('search'); input.value = arguments";
    let script = format!("(() => {{ {set}; input.dispatchEvent(new Event('input')); }})()");
    browser.eval(&script.replace("arguments", &format!("{text:?}"))).await;
    browser
        .until(&format!("{RESULTS} === {results:?} && document.getElementById('search').value === {text:?}"))
        .await;
}

async fn assert_fits(browser: &Browser, what: &str) {
    let widths = browser.eval("[document.documentElement.scrollWidth, window.innerWidth]").await;
    let (needed, available) = (widths[0].as_u64(), widths[1].as_u64());
    assert_eq!(available, Some(360), "{what}");
    assert!(needed <= available, "{what} needs {needed:?} pixels and overflows");
}

#[tokio::test]
async fn page_loads_and_shows_the_pipeline_of_each_informer() {
    let world = World::start().await;
    let browser = open(WIDE, &world.url).await;
    browser.until("document.querySelectorAll('#informers a').length === 4").await;
    let stages = browser.eval(
        "[...document.querySelectorAll('#informers a:first-child .cell')].map((it) => it.dataset.stage)",
    );
    assert_eq!(stages.await, serde_json::json!(["server", "reflector", "queue", "store", "handlers"]));
    // Informers with a problem come first.
    browser.until("document.querySelector('#informers a .name').textContent === 'configmaps'").await;
    browser
        .until("document.querySelector('#controllers').textContent.includes('failed: no such zone')")
        .await;
    open_informer(&browser, "configmaps (ConfigMap)").await;
    browser.until("document.querySelector('.tables').textContent.includes('the colour is unknown')").await;
    browser.until("document.querySelector('.tables').textContent.includes('initial')").await;
    let origins =
        "performance.getEntriesByType('resource').every((it) => it.name.startsWith(location.origin))";
    assert_eq!(browser.eval(origins).await, true);
    drop(browser);
    world.stop().await;
}

#[tokio::test]
async fn page_follows_a_change_live_with_its_difference() {
    let world = World::start().await;
    let browser = open(WIDE, &world.url).await;
    open_informer(&browser, "pods (Pod)").await;
    search(&browser, "web-1", "shop/web-1").await;
    browser.eval("document.querySelector('#results a').click()").await;
    browser.until("document.querySelector('.yaml').textContent.includes('nodeName: node-1')").await;
    world.label_pod("web-1", "tier", "gold").await;
    browser.until("document.querySelector('.yaml .fresh')?.textContent.includes('tier: gold')").await;
    browser.until("document.querySelector('.changes .path').textContent === 'metadata.labels.tier'").await;
    browser.until("document.querySelector('.changes .new').textContent.includes('gold')").await;
    world.delete_pod("web-1");
    browser
        .until("document.querySelector('.object .problem').textContent.includes('not in the store')")
        .await;
    browser.until("document.querySelector('.changes .kind').dataset.kind === 'deleted'").await;
    drop(browser);
    world.stop().await;
}

#[tokio::test]
async fn search_finds_by_key_label_index_and_field() {
    let world = World::start().await;
    let browser = open(WIDE, &world.url).await;
    open_informer(&browser, "pods (Pod)").await;
    search(&browser, "db", "shop/db-0").await;
    search(&browser, "label:app=web", "shop/web-0 shop/web-1 shop/web-2").await;
    search(&browser, "index:node=node-1", "shop/db-0 shop/web-1").await;
    search(&browser, "field:spec.containers.image=web:2", "shop/web-2").await;
    search(&browser, "label:app=web index:node=node-1", "shop/web-1").await;
    search(&browser, "no-such-pod", "").await;
    browser.until("document.getElementById('matches').textContent === '0 of 4'").await;
    let set = "(() => { const input = document.getElementById('search'); input.value = 'index:zone=a'; \
               input.dispatchEvent(new Event('input')); })()";
    browser.eval(set).await;
    browser
        .until("document.querySelector('section.objects .problem').textContent.includes('there is no index')")
        .await;
    drop(browser);
    world.stop().await;
}

#[tokio::test]
async fn secret_is_masked_and_cannot_be_found_by_value() {
    let world = World::start().await;
    let browser = open(WIDE, &world.url).await;
    open_informer(&browser, "secrets (Secret)").await;
    search(&browser, "field:data.password=aHVudGVyMg==", "").await;
    search(&browser, "field:data.password", "shop/database").await;
    browser.eval("document.querySelector('#results a').click()").await;
    browser.until("document.querySelector('.yaml').textContent.includes('password: •••••')").await;
    world.change_secret("c3dvcmRmaXNo");
    browser.until("document.querySelector('.changes .path').textContent === 'data.password'").await;
    let html = browser.eval("document.documentElement.outerHTML").await.to_string();
    for value in ["aHVudGVyMg", "c3dvcmRmaXNo", "hunter2"] {
        assert!(!html.contains(value), "the page contains {value}");
    }
    drop(browser);
    world.stop().await;
}

#[tokio::test]
async fn page_fits_a_screen_of_360_pixels() {
    let world = World::start().await;
    let browser = open(NARROW, &world.url).await;
    browser.until("document.querySelectorAll('#informers a').length === 4").await;
    assert_fits(&browser, "the overview").await;
    for (id, key) in [("pods (Pod)", "shop/web-1"), ("configmaps (ConfigMap)", "shop/good")] {
        open_informer(&browser, id).await;
        browser.until("document.querySelectorAll('.tables tbody tr').length > 1").await;
        assert_fits(&browser, id).await;
        // Such a text names the remedy, and is nowhere else on the page.
        let is_cut = "const health = document.querySelector('p.health'); \
                      health.textContent = 'grant list and watch '.repeat(9); \
                      return health.scrollWidth > health.clientWidth";
        assert_eq!(
            browser.eval(&format!("(() => {{ {is_cut} }})()")).await,
            false,
            "{id}: the health is cut"
        );
        let link = format!(
            "[...document.querySelectorAll('#results a')].find((it) => it.textContent.includes('{key}'))"
        );
        browser.eval(&format!("{link}.click()")).await;
        browser.until("document.querySelector('.yaml')?.textContent.includes('metadata')").await;
        assert_fits(&browser, key).await;
    }
    drop(browser);
    world.stop().await;
}

#[tokio::test]
async fn page_works_by_keyboard_alone() {
    let world = World::start().await;
    let browser = open(WIDE, &world.url).await;
    browser.until("document.querySelectorAll('#informers a').length === 4").await;
    let focused = |part: &str| format!("document.activeElement.{part}");
    let is_visible = "document.activeElement.matches(':focus-visible') \
                      && getComputedStyle(document.activeElement).outlineStyle === 'solid'";
    browser.press(TAB).await;
    assert_eq!(browser.eval(&focused("className")).await, "skip");
    assert_eq!(browser.eval("document.activeElement.getBoundingClientRect().left >= 0").await, true);
    browser.press(ENTER).await;
    assert_eq!(browser.eval(&focused("id")).await, "main");
    browser.press(TAB).await;
    assert_eq!(browser.eval(&focused("id")).await, "filter");
    assert_eq!(browser.eval(is_visible).await, true);
    browser.press("pods").await;
    browser.until("document.querySelectorAll('#informers a').length === 1").await;
    browser.press(ARROW_DOWN).await;
    assert_eq!(browser.eval(is_visible).await, true);
    browser.press(ENTER).await;
    browser.until("document.querySelector('section.objects')?.dataset.loads >= 1").await;
    browser.press("/").await;
    assert_eq!(browser.eval(&focused("id")).await, "search");
    browser.press("label:app=web").await;
    browser.until(&format!("{RESULTS} === 'shop/web-0 shop/web-1 shop/web-2'")).await;
    browser.press(&[ARROW_DOWN, ARROW_DOWN, ARROW_DOWN, ARROW_UP].concat()).await;
    assert_eq!(browser.eval(&focused("querySelector('.key').textContent")).await, "shop/web-1");
    assert_eq!(browser.eval(is_visible).await, true);
    browser.press(ENTER).await;
    browser.until("document.querySelector('.yaml')?.textContent.includes('name: web-1')").await;
    browser.press(ESCAPE).await;
    browser.until("document.getElementById('object').hidden").await;
    assert_eq!(browser.eval(&focused("querySelector('.key').textContent")).await, "shop/web-1");
    // The same version of the object is shown again.
    browser.press(ENTER).await;
    browser.until("document.querySelector('.yaml')?.textContent.includes('name: web-1')").await;
    browser.press(ESCAPE).await;
    browser.until("document.getElementById('object').hidden").await;
    browser.press(ESCAPE).await;
    browser.until("!document.getElementById('overview').hidden").await;
    assert_eq!(browser.eval(&focused("querySelector('.name').textContent")).await, "pods");
    drop(browser);
    world.stop().await;
}
