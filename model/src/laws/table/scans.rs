//! Scans: everything, once, in one go or in parts.

use super::trial::{Trial, at, sorted};
use crate::table::{Projection, Scan, path};

/// A scan in pages of any size shows every item once; a filter leaves some out.
pub async fn a_scan_shows_every_item_once(trial: Trial) {
    let table = trial.grouped().await;
    let items: Vec<_> =
        (0..60).map(|n| at(&format!("group-{}", n % 13), n).with("odd", n % 2 == 1)).collect();
    trial.put_all(&table, items.clone()).await;
    for limit in [1, 7, 59, 60, 1000] {
        let seen = trial.scan_all(&table, Scan::new().consistent().limit(limit)).await;
        trial.same(format!("a scan by {limit}"), sorted(seen), sorted(items.clone()));
    }
    let odd = Scan::new().consistent().filter(path("odd").equals(true)).limit(10);
    let page = trial.ok("a scan", trial.store().scan(&table, odd.clone()).await);
    trial.same("items that a page looked at", page.evaluated, 10);
    trial.same("odd items", trial.scan_all(&table, odd).await.len(), 30);
    let parts = trial.scan_all(&table, Scan::new().consistent().only(Projection::of(["at"]))).await;
    trial.holds(parts.iter().all(|item| item.len() == 1), "a projection shows more than it should");
    let count = trial.ok("a count", trial.store().scan(&table, Scan::new().consistent().count_only()).await);
    trial.same("a count", (count.items.len(), count.returned, count.evaluated), (0, 60, 60));
}

/// The segments of a parallel scan hold every item once, however many there are; none holds nearly all.
pub async fn segments_hold_every_item_once(trial: Trial) {
    let table = trial.grouped().await;
    let items: Vec<_> = (0..200).map(|n| at(&format!("group-{n}"), n)).collect();
    trial.put_all(&table, items.clone()).await;
    for of in [1, 2, 3, 16, 100] {
        let (mut seen, mut largest) = (Vec::new(), 0);
        for number in 0..of {
            let segment = Scan::new().consistent().segment(number, of).limit(9);
            let found = trial.scan_all(&table, segment).await;
            largest = largest.max(found.len());
            seen.extend(found);
        }
        trial.same(format!("{of} segments"), sorted(seen), sorted(items.clone()));
        trial.holds(of == 1 || largest < 150, format!("one of {of} segments holds {largest} of 200 items"));
    }
}
