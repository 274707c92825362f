//! Futures on the heap.

use std::pin::Pin;

/// A future on the heap.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts a future on the heap. A function of its own makes it, so that the frame of the caller, which may choose among many, does not have
/// room for each of them: builds without optimization keep all of these apart.
pub fn boxed<'a, T, F>(make: impl FnOnce() -> F) -> Boxed<'a, T>
where
    F: Future<Output = T> + Send + 'a,
{
    Box::pin(make())
}
