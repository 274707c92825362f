//! Where pages by position ended: who reads on costs a page, and need not walk all that comes before it, nor count again.

use std::sync::{Arc, LazyLock};

use chancery_record::{Timestamp, Value};
use quick_cache::sync::Cache;

/// Pages that are remembered.
const MOST: usize = 10_000;
/// How long, in ms.
const KEPT: i64 = 10 * 60 * 1000;

/// Where a page ended.
#[derive(Clone, Debug)]
pub struct End {
    /// Behind which row the next page begins: its value of the sort attribute, and its key.
    pub after: [Value; 2],
    /// How many rows there are in all.
    pub total: i64,
    until: i64,
}

/// A list, and where the next page begins.
type Place = (Vec<u8>, usize);

/// Ends of pages.
static ENDS: LazyLock<Cache<Place, Arc<End>>> = LazyLock::new(|| Cache::new(MOST));

/// Where the page before the one at `start` ended, if that is remembered.
pub fn recall(list: &[u8], start: usize, now: Timestamp) -> Option<Arc<End>> {
    if start == 1 {
        return None;
    }
    ENDS.get(&(list.to_vec(), start)).filter(|end| end.until > now.0)
}

/// Remembers that the page at `next` begins behind a row.
pub fn remember(list: Vec<u8>, next: usize, (after, total): ([Value; 2], i64), now: Timestamp) {
    ENDS.insert((list, next), Arc::new(End { after, total, until: now.0 + KEPT }));
}
