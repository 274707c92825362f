//! The limits for the width and the height of an image.

use crate::{MAX_PIXELS, MAX_SIDE, PictureRefusal};

/// Rejects an image with no pixels or too many.
pub(crate) fn check_size(width: u32, height: u32) -> Result<(), PictureRefusal> {
    if width == 0 || height == 0 {
        return Err(PictureRefusal::Malformed("The image has no pixels.".to_owned()));
    }
    if width > MAX_SIDE || height > MAX_SIDE || u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(PictureRefusal::TooManyPixels(format!(
            "The image has {width} x {height} pixels; {MAX_SIDE} x {MAX_SIDE} are allowed, {MAX_PIXELS} in all."
        )));
    }
    Ok(())
}
