//! A writer that fails when the result has more bytes than may be stored.

use std::io::{self, Write};

use crate::{Format, MAX_BYTES, PictureRefusal};

/// The bytes written, up to [`MAX_BYTES`].
#[derive(Default)]
pub struct BoundedWriter {
    bytes: Vec<u8>,
    full: bool,
}

impl BoundedWriter {
    /// The bytes written. Fails with [`PictureRefusal::TooLarge`] if they were too many, else with the error in
    /// `outcome`.
    pub fn finish(
        self,
        outcome: Result<(), PictureRefusal>,
        format: Format,
    ) -> Result<Vec<u8>, PictureRefusal> {
        if self.full {
            let name = format.content_type();
            return Err(PictureRefusal::TooLarge(format!(
                "Without its metadata and encoded anew as {name}, the image has more than {MAX_BYTES} bytes."
            )));
        }
        outcome.map(|()| self.bytes)
    }
}

impl Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_BYTES {
            // an encoder may ignore the error when it finishes: the flag tells
            self.full = true;
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
