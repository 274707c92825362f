//! A cache of page ends for pages by index: the next page need not scan the rows before it, nor count again.

use std::sync::{Arc, LazyLock};

use chancery_record::{Timestamp, Value};
use quick_cache::sync::Cache;

/// The most cached ends.
const MAX_CACHED: usize = 10_000;
/// How long an end is cached, in ms.
const RETENTION: i64 = 10 * 60 * 1000;

/// The end of a page.
#[derive(Clone, Debug)]
pub struct End {
    /// The last row: its value of the sort attribute, and its key.
    pub after: [Value; 2],
    /// The number of rows in all.
    pub total: i64,
    until: i64,
}

/// A list, and the start index of the next page.
type PageStart = (Vec<u8>, usize);

/// Ends of pages.
static ENDS: LazyLock<Cache<PageStart, Arc<End>>> = LazyLock::new(|| Cache::new(MAX_CACHED));

/// The end of the page before the one at `start`, if cached.
pub fn recall(list: &[u8], start: usize, now: Timestamp) -> Option<Arc<End>> {
    if start == 1 {
        return None;
    }
    ENDS.get(&(list.to_vec(), start)).filter(|end| end.until > now.0)
}

/// Caches the end of the page before the one at `next`.
pub fn remember(list: Vec<u8>, next: usize, after: [Value; 2], total: i64, now: Timestamp) {
    ENDS.insert((list, next), Arc::new(End { after, total, until: now.0 + RETENTION }));
}
