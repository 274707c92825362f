//! The body of an answer, collected in memory or sent in parts.

use crate::Problem;

/// A part of an answer that is sent while the operation is still running.
pub enum Part {
    /// Status and headers, before the first bytes.
    Head(u16, Vec<(&'static str, String)>),
    /// Bytes of the body.
    Bytes(Vec<u8>),
    /// The end of a complete body. Without it the connection must show the recipient that the body is
    /// incomplete.
    End,
}

/// Receives parts of an answer; `false` when the recipient is disconnected.
pub type Sink = Box<dyn FnMut(Part) -> bool + Send>;

/// Bytes of a list collected before they are sent.
const FLUSH_SIZE: usize = 64 << 10;

/// The body of an answer: collected in memory, and sent from there when it grows.
#[derive(Default)]
pub struct Out {
    /// The unsent bytes.
    pub bytes: Vec<u8>,
    /// The `ETag` of the body, where it is not computed from the bytes.
    pub tag: Option<String>,
    sink: Option<Sink>,
    head: Option<(u16, Vec<(&'static str, String)>)>,
    sent: bool,
}

impl Out {
    /// A body that is sent to `sink` when it grows over a bound.
    pub fn streaming(sink: Sink) -> Self {
        Self { sink: Some(sink), ..Self::default() }
    }

    /// Restarts the body, when the operation runs again.
    pub fn restart(&mut self) -> Result<(), Problem> {
        self.bytes.clear();
        self.tag = None;
        if self.sent { Err(disconnected()) } else { Ok(()) }
    }

    /// Allows parts to be sent from now on, with this status and these headers.
    pub fn begin(&mut self, status: u16, headers: Vec<(&'static str, String)>) {
        if !self.sent {
            self.head = Some((status, headers));
        }
    }

    /// Sends the collected bytes if there are many.
    pub fn flush_if_large(&mut self) -> Result<(), Problem> {
        if self.bytes.len() < FLUSH_SIZE {
            return Ok(());
        }
        let Some(sink) = &mut self.sink else { return Ok(()) };
        if let Some((status, headers)) = self.head.take() {
            self.sent = true;
            if !sink(Part::Head(status, headers)) {
                return Err(disconnected());
            }
        }
        if self.sent && !sink(Part::Bytes(std::mem::take(&mut self.bytes))) {
            return Err(disconnected());
        }
        Ok(())
    }

    /// Sends the rest, if a part was sent before.
    pub fn finish(&mut self) {
        if let (true, Some(sink)) = (self.sent, &mut self.sink) {
            let _ = sink(Part::Bytes(std::mem::take(&mut self.bytes))) && sink(Part::End);
        }
    }
}

fn disconnected() -> Problem {
    Problem::invalid("The reader of this answer went away.")
}
