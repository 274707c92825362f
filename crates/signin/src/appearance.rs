//! How pages look to whom, and the files that they show: read once, and again when the security epoch has advanced.

use std::sync::Arc;

use chancery_management::appearance::asset_at;
pub use chancery_management::appearance::{Appearance, Asset, Owners};
use chancery_store::{Error, Mode, Store, Tx};
use quick_cache::{Weighter, sync::Cache};

/// The most looks, and the most files, that are kept.
const MOST: usize = 10_000;
/// The most bytes of the looks that are kept, by their views as they are written; parsed they take some times as many.
const VIEW_BYTES: u64 = 32 << 20;
/// The most bytes of the files that are kept.
const ASSET_BYTES: u64 = 32 << 20;
/// What an entry takes beside its bytes: the names of all views, in each language.
const ENTRY: u64 = 4 << 10;

type Known<T> = (Arc<T>, i64);

#[derive(Clone)]
struct Bytes;

impl Weighter<Owners, Known<Appearance>> for Bytes {
    fn weight(&self, _: &Owners, (known, _): &Known<Appearance>) -> u64 {
        ENTRY.saturating_add(known.bytes() as u64)
    }
}

impl Weighter<String, Known<Asset>> for Bytes {
    fn weight(&self, location: &String, (known, _): &Known<Asset>) -> u64 {
        ENTRY.saturating_add((location.len() + known.data.len()) as u64)
    }
}

/// How pages look, and the files that they show.
pub struct Appearances {
    looks: Cache<Owners, Known<Appearance>, Bytes>,
    assets: Cache<String, Known<Asset>, Bytes>,
}

impl Default for Appearances {
    fn default() -> Self {
        Self {
            looks: Cache::with_weighter(MOST, VIEW_BYTES, Bytes),
            assets: Cache::with_weighter(MOST, ASSET_BYTES, Bytes),
        }
    }
}

impl Appearances {
    /// How the pages of these owners look. `epoch` is the security epoch, where this request has read it.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn find(
        &self,
        store: &Store,
        owners: Owners,
        epoch: Option<i64>,
    ) -> Result<Arc<Appearance>, Error> {
        let known = self.looks.get(&owners);
        if let Some((known, of)) = &known
            && is_current(store, epoch, *of).await?
        {
            return Ok(Arc::clone(known));
        }
        let reading = move |tx: &mut Tx<'_>| {
            // the epoch is read first, so that what follows is no older
            let epoch = tx.epoch()?;
            Ok::<_, Error>((Appearance::read(tx, owners)?, epoch))
        };
        let (found, epoch) = store.run("FindAppearance", Mode::Quick, None, reading).await?;
        // what did not change is not parsed again
        let same = known.map(|(known, _)| known).filter(|known| **known == found);
        let found = same.unwrap_or_else(|| Arc::new(found));
        self.looks.insert(owners, (Arc::clone(&found), epoch));
        Ok(found)
    }

    /// The file that this process knows to be at a location.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn known_asset(&self, store: &Store, location: &str) -> Result<Option<Arc<Asset>>, Error> {
        match self.assets.get(location) {
            Some((known, of)) if is_current(store, None, of).await? => Ok(Some(known)),
            _ => Ok(None),
        }
    }

    /// Reads the file at a location; `None` where there is none.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn read_asset(&self, store: &Store, location: &str) -> Result<Option<Arc<Asset>>, Error> {
        let wanted = location.to_owned();
        let reading = move |tx: &mut Tx<'_>| {
            let epoch = tx.epoch()?;
            Ok::<_, Error>((asset_at(tx, &wanted)?, epoch))
        };
        let (found, epoch) = store.run("FindAsset", Mode::Quick, None, reading).await?;
        let Some(found) = found.map(Arc::new) else { return Ok(None) };
        self.assets.insert(location.to_owned(), (Arc::clone(&found), epoch));
        Ok(Some(found))
    }
}

async fn is_current(store: &Store, known: Option<i64>, of: i64) -> Result<bool, Error> {
    match known {
        Some(epoch) => Ok(epoch == of),
        None => Ok(store.epoch().await? == of),
    }
}
