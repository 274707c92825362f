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

type Cached<T> = (Arc<T>, i64);

#[derive(Clone)]
struct Bytes;

impl Weighter<Owners, Cached<Appearance>> for Bytes {
    fn weight(&self, _: &Owners, (cached, _): &Cached<Appearance>) -> u64 {
        ENTRY.saturating_add(cached.bytes() as u64)
    }
}

impl Weighter<String, Cached<Asset>> for Bytes {
    fn weight(&self, location: &String, (cached, _): &Cached<Asset>) -> u64 {
        ENTRY.saturating_add((location.len() + cached.data.len()) as u64)
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
        if let Some((cached, of)) = &cached
            && is_current(store, epoch, *of).await?
        {
            return Ok(Arc::clone(cached));
        }
        let reading = move |tx: &mut Tx<'_>| {
            // the epoch is read first, so that what follows is no older
            let epoch = tx.epoch()?;
            Ok::<_, Error>((Appearance::read(tx, owners)?, epoch))
        };
        let (loaded, epoch) = store.run("FindAppearance", Mode::Quick, None, reading).await?;
        // an unchanged appearance is not parsed again
        let same = cached.map(|(cached, _)| cached).filter(|cached| **cached == loaded);
        let loaded = same.unwrap_or_else(|| Arc::new(loaded));
        self.appearances.insert(owners, (Arc::clone(&loaded), epoch));
        Ok(loaded)
    }

    /// The cached file at a location.
    pub async fn known_asset(&self, store: &Store, location: &str) -> Result<Option<Arc<Asset>>, Error> {
        match self.assets.get(location) {
            Some((cached, of)) if is_current(store, None, of).await? => Ok(Some(cached)),
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
        let Some(loaded) = loaded.map(Arc::new) else { return Ok(None) };
        self.assets.insert(location.to_owned(), (Arc::clone(&loaded), epoch));
        Ok(Some(loaded))
    }
}

async fn is_current(store: &Store, known: Option<i64>, of: i64) -> Result<bool, Error> {
    match known {
        Some(epoch) => Ok(epoch == of),
        None => Ok(store.epoch().await? == of),
    }
}
