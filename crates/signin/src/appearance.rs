//! Caches of appearances and of the files of pages, valid until the security epoch advances.

use std::sync::Arc;

use chancery_management::appearance::asset_at;
pub use chancery_management::appearance::{Appearance, Asset, Owners};
use chancery_store::{Error, Mode, Store, Tx};
use quick_cache::{Weighter, sync::Cache};

/// The maximum of cached appearances, and of cached files.
const MAX_CACHED: usize = 10_000;
/// The maximum of bytes of cached appearances, counted by the source of their views; parsed views take several times
/// as many.
const VIEW_BYTES: u64 = 32 << 20;
/// The maximum of bytes of cached files.
const ASSET_BYTES: u64 = 32 << 20;
/// The overhead of an entry in bytes: the names of all views, in each language.
const ENTRY: u64 = 4 << 10;

/// A cached value, with the security epoch at which it was read.
struct Cached<T> {
    value: Arc<T>,
    epoch: i64,
}

impl<T> Clone for Cached<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), epoch: self.epoch }
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Owners, Cached<Appearance>> for Bytes {
    fn weight(&self, _: &Owners, cached: &Cached<Appearance>) -> u64 {
        ENTRY.saturating_add(cached.value.bytes() as u64)
    }
}

impl Weighter<String, Cached<Asset>> for Bytes {
    fn weight(&self, location: &String, cached: &Cached<Asset>) -> u64 {
        ENTRY.saturating_add((location.len() + cached.value.data.len()) as u64)
    }
}

/// Caches of appearances and files.
pub struct Appearances {
    appearances: Cache<Owners, Cached<Appearance>, Bytes>,
    assets: Cache<String, Cached<Asset>, Bytes>,
}

impl Default for Appearances {
    fn default() -> Self {
        Self {
            appearances: Cache::with_weighter(MAX_CACHED, VIEW_BYTES, Bytes),
            assets: Cache::with_weighter(MAX_CACHED, ASSET_BYTES, Bytes),
        }
    }
}

impl Appearances {
    /// The appearance of the pages of these owners. `epoch` is the security epoch, if this request has read it.
    pub async fn find(
        &self,
        store: &Store,
        owners: Owners,
        epoch: Option<i64>,
    ) -> Result<Arc<Appearance>, Error> {
        let cached = self.appearances.get(&owners);
        if let Some(cached) = &cached
            && is_current(store, epoch, cached.epoch).await?
        {
            return Ok(Arc::clone(&cached.value));
        }
        let reading = move |tx: &mut Tx<'_>| {
            // the epoch is read first, so that what follows is no older
            let epoch = tx.epoch()?;
            Ok::<_, Error>((Appearance::read(tx, owners)?, epoch))
        };
        let (loaded, epoch) = store.run("FindAppearance", Mode::Quick, None, reading).await?;
        // an unchanged appearance is not parsed again
        let same = cached.map(|cached| cached.value).filter(|value| **value == loaded);
        let value = same.unwrap_or_else(|| Arc::new(loaded));
        self.appearances.insert(owners, Cached { value: Arc::clone(&value), epoch });
        Ok(value)
    }

    /// The cached file at a location.
    pub async fn known_asset(&self, store: &Store, location: &str) -> Result<Option<Arc<Asset>>, Error> {
        match self.assets.get(location) {
            Some(cached) if is_current(store, None, cached.epoch).await? => Ok(Some(cached.value)),
            _ => Ok(None),
        }
    }

    /// Reads the file at a location; `None` if it does not exist.
    pub async fn read_asset(&self, store: &Store, location: &str) -> Result<Option<Arc<Asset>>, Error> {
        let key = location.to_owned();
        let reading = move |tx: &mut Tx<'_>| {
            let epoch = tx.epoch()?;
            Ok::<_, Error>((asset_at(tx, &key)?, epoch))
        };
        let (loaded, epoch) = store.run("FindAsset", Mode::Quick, None, reading).await?;
        let Some(value) = loaded.map(Arc::new) else { return Ok(None) };
        self.assets.insert(location.to_owned(), Cached { value: Arc::clone(&value), epoch });
        Ok(Some(value))
    }
}

async fn is_current(store: &Store, known: Option<i64>, of: i64) -> Result<bool, Error> {
    match known {
        Some(epoch) => Ok(epoch == of),
        None => Ok(store.epoch().await? == of),
    }
}
