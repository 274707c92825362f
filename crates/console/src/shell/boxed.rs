//! Futures on the heap.

use std::pin::Pin;

/// A future on the heap.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Moves a future to the heap. A separate function constructs it, so that the stack frame of a caller with many branches
/// does not reserve space for each future: builds without optimization give each its own slot.
pub fn boxed<'a, T, F>(make: impl FnOnce() -> F) -> Boxed<'a, T>
where
    F: Future<Output = T> + Send + 'a,
{
    Box::pin(make())
}
