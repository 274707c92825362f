//! The last polls of waiting devices (RFC 8628, section 3.5).

use chancery_record::Timestamp;
use quick_cache::sync::Cache;

/// The minimum interval between two polls of a device, in seconds.
pub const INTERVAL: i64 = 5;
/// The number of devices whose last poll is remembered.
const REMEMBERED: usize = 10_000;

/// The last polls of devices, by the digests of their codes: a device that polls too often is slowed down.
pub struct DevicePolls(Cache<Vec<u8>, i64>);

impl Default for DevicePolls {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl DevicePolls {
    /// Records a poll. Returns whether it is too early.
    pub(crate) fn is_early(&self, digest: &[u8], now: Timestamp) -> bool {
        let before = self.0.get(digest);
        self.0.insert(digest.to_vec(), now.0);
        before.is_some_and(|before| now.0 - before < INTERVAL * 1000)
    }
}
