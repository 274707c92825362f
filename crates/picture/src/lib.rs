//! User images: accepted in the forms that clients send, checked, and encoded again, so that only pixels are stored.
//!
//! [`parse`] finds the image in a request's body; [`normalize`] turns it into the image that is stored. Both
//! are pure and deterministic, and work on a complete body in memory.

mod animation;
mod bounded_writer;
mod colour;
mod dimensions;
mod extent;
mod format;
mod multipart;
mod picture;
mod refusal;
mod still;
mod upload;

#[cfg(test)]
mod samples;

pub use format::Format;
pub use picture::{Picture, normalize};
pub use refusal::PictureRefusal;
pub use upload::{Upload, parse};

/// How many bytes an image may have, as sent and as stored.
pub const MAX_BYTES: usize = 1 << 20;
/// How many bytes a request's body may have: an image in base64 and what is around it.
pub const MAX_BODY_BYTES: usize = 3 << 19;
/// How many pixels wide an image may be, and how many high.
pub const MAX_SIDE: u32 = 4096;
/// How many pixels a still image, or the canvas of an animation, may have.
pub const MAX_PIXELS: u64 = 16 << 20;
/// How many frames an animation may have.
pub const MAX_FRAMES: usize = 500;
/// How many pixels all frames of an animation may have together.
pub const MAX_ANIMATION_PIXELS: u64 = 64 << 20;
