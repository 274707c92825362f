//! A place for the result that takes no more than may be stored.

use std::io::{self, Write};

use crate::{Format, MAX_BYTES, Refused};

/// Bytes written, until they are more than [`MAX_BYTES`].
#[derive(Default)]
pub struct Capped {
    bytes: Vec<u8>,
    full: bool,
}

impl Capped {
    /// The bytes; or why writing them failed, which is `outcome` unless they were too many.
    pub fn finish(self, outcome: Result<(), Refused>, format: Format) -> Result<Vec<u8>, Refused> {
        if self.full {
            let name = format.content_type();
            return Err(Refused::TooLarge(format!(
                "Without its metadata and encoded anew as {name}, the image has more than {MAX_BYTES} bytes."
            )));
        }
        outcome.map(|()| self.bytes)
    }
}

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_BYTES {
            // an encoder may drop the error at its end; the mark stays
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
