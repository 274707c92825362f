//! The metadata of authenticators as operations get them: their source, and the snapshot already read. This
//! module does not know their content.

use std::{
    any::Any,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
};

/// The text as fetched, or the reason of the failure, for people.
pub type FetchResult = Result<Vec<u8>, String>;

/// Fetches the signed text, within its own bounds of size and time.
pub type Fetch = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = FetchResult> + Send>> + Send + Sync>;

/// The source of the signed metadata, and the required signer.
#[derive(Clone, Default)]
pub struct MetadataSource {
    /// Fetches them; none where no source is configured.
    pub fetch: Option<Fetch>,
    /// The root certificate (DER or PEM) to which the signer's must chain, and the signer's name; those of the
    /// FIDO Alliance by default.
    pub root: Option<Arc<(Vec<u8>, String)>>,
}

/// A cache of one large item, identified by its number: the last one read, shared by all calls. It is a copy of
/// stored data, so it does not matter which run of an operation filled it.
#[derive(Default)]
pub struct ItemCache(RwLock<Option<CachedItem>>);

type CachedItem = (i64, Arc<dyn Any + Send + Sync>);

impl ItemCache {
    /// The item with this number, if it is cached.
    pub fn recall<T: Send + Sync + 'static>(&self, number: i64) -> Option<Arc<T>> {
        let cached = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (_, item) = cached.as_ref().filter(|(cached_number, _)| *cached_number == number)?;
        Arc::clone(item).downcast().ok()
    }

    /// Caches an item in place of the one before.
    pub fn remember<T: Send + Sync + 'static>(&self, number: i64, item: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some((number, item));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ItemCache;

    #[test]
    fn the_cache_returns_an_item_by_its_number_and_type_only() {
        let memory = ItemCache::default();
        assert_eq!(memory.recall::<&str>(1), None);
        memory.remember(1, Arc::new("one"));
        assert_eq!(memory.recall::<&str>(1).as_deref(), Some(&"one"));
        memory.remember(2, Arc::new("two"));
        assert_eq!(memory.recall::<&str>(1), None);
        assert_eq!(memory.recall::<i64>(2), None, "another type");
        assert_eq!(memory.recall::<&str>(2).as_deref(), Some(&"two"));
    }
}
