//! What operations are given about makes of authenticators: where it comes from, and what was read of
//! it already. What it says is not known here.

use std::{
    any::Any,
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
};

/// The text as it came, or why it did not, for people.
pub type Fetched = Result<Vec<u8>, String>;

/// Fetches the signed text, within its own bounds of size and time.
pub type Fetch = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Fetched> + Send>> + Send + Sync>;

/// Where the signed metadata come from and who must have signed them.
#[derive(Clone, Default)]
pub struct MetadataSource {
    /// Fetches them; none where no source is configured.
    pub fetch: Option<Fetch>,
    /// The root (DER or PEM) that the signer's certificate must lead to, and the signer's name;
    /// FIDO's own where there is none.
    pub root: Option<Arc<(Vec<u8>, String)>>,
}

/// Something large that operations ask again and again, and that its number tells from any other:
/// the newest that was read, shared by all calls. It is a copy of what is stored, so that it does not
/// matter which run of an operation left it here.
#[derive(Default)]
pub struct Memory(RwLock<Option<Remembered>>);

type Remembered = (i64, Arc<dyn Any + Send + Sync>);

impl Memory {
    /// What has this number, if it is remembered.
    pub fn recall<T: Send + Sync + 'static>(&self, number: i64) -> Option<Arc<T>> {
        let remembered = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let (_, what) = remembered.as_ref().filter(|(known, _)| *known == number)?;
        Arc::clone(what).downcast().ok()
    }

    /// Remembers this in the place of what had another number.
    pub fn remember<T: Send + Sync + 'static>(&self, number: i64, what: Arc<T>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some((number, what));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Memory;

    #[test]
    fn the_number_tells_what_is_remembered() {
        let memory = Memory::default();
        assert_eq!(memory.recall::<&str>(1), None);
        memory.remember(1, Arc::new("one"));
        assert_eq!(memory.recall::<&str>(1).as_deref(), Some(&"one"));
        memory.remember(2, Arc::new("two"));
        assert_eq!(memory.recall::<&str>(1), None);
        assert_eq!(memory.recall::<i64>(2), None, "another type");
        assert_eq!(memory.recall::<&str>(2).as_deref(), Some(&"two"));
    }
}
