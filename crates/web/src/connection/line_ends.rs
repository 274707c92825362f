//! Line ends of HTTP/1.1. The library takes a bare LF as the end of a line, which a proxy in front may not, so that both see other
//! headers (RFC 9112, sections 2.2 and 11.2): here it is refused.

use memchr::memchr;

/// The longest buffered line, in bytes: a head has no more.
const LONGEST: usize = super::BUFFER;

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// Follows the input of a client. A bare LF of a head becomes a character that none may have, and the head ends: the library
/// refuses it with 400.
#[derive(Default)]
pub struct LineEnds {
    state: State,
    line: Vec<u8>,
    /// How long the body is whose head is read; `None` where it comes in chunks.
    length: Option<u64>,
}

/// The expected input.
#[derive(Clone, Copy, Default)]
enum State {
    /// A request.
    #[default]
    Request,
    /// A line of its head.
    Head,
    /// So many bytes of its body, or of a chunk of it.
    Body(u64),
    Chunk(u64),
    /// The line after a chunk, the line with the size of the next one, and the lines after the last.
    ChunkEnd,
    Size,
    Trailer,
    /// Anything: HTTP/2, or input that the library refuses by itself.
    Anything,
    /// Nothing that counts, once the end of the refused head was handed on.
    Refused {
        is_ended: bool,
    },
}

impl LineEnds {
    /// The replacement of the input of a refused request: the end of the head, then nothing.
    pub const fn replacement(&mut self) -> Option<&'static [u8]> {
        match self.state {
            State::Refused { is_ended: false } => {
                self.state = State::Refused { is_ended: true };
                Some(END)
            }
            State::Refused { .. } => Some(&[]),
            _ => None,
        }
    }

    /// Processes the next input.
    pub fn watch(&mut self, mut bytes: &mut [u8]) {
        while !bytes.is_empty() {
            let read = match self.state {
                State::Anything | State::Refused { .. } => return,
                State::Body(left) => {
                    let (read, left) = taken(left, bytes.len());
                    self.state = if left == 0 { State::Request } else { State::Body(left) };
                    read
                }
                State::Chunk(left) => {
                    let (read, left) = taken(left, bytes.len());
                    self.state = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                    read
                }
                _ => self.take_line(bytes),
            };
            bytes = bytes.get_mut(read..).unwrap_or_default();
        }
    }

    /// Processes a line, or the beginning of one; returns its length in bytes.
    fn take_line(&mut self, bytes: &mut [u8]) -> usize {
        let Some(end) = memchr(b'\n', bytes) else {
            self.line.extend_from_slice(bytes);
            if self.line.len() > LONGEST {
                self.state = State::Anything;
            }
            return bytes.len();
        };
        let (rest, line) = (bytes.get(..end).unwrap_or_default(), &mut std::mem::take(&mut self.line));
        // a line that is whole is not copied
        let line = if line.is_empty() {
            rest
        } else {
            line.extend_from_slice(rest);
            line
        };
        if let Some(line) = line.strip_suffix(b"\r") {
            self.state = self.after_line(line);
        } else {
            self.state = State::Refused { is_ended: false };
            if let Some(feed) = bytes.get_mut(end) {
                *feed = 0;
            }
        }
        end + 1
    }

    /// The state after a line.
    fn after_line(&mut self, line: &[u8]) -> State {
        match (self.state, line) {
            (State::Request, b"PRI * HTTP/2.0") => State::Anything,
            (State::Request | State::Trailer, b"") => State::Request,
            (State::Request, _) => {
                self.length = Some(0);
                State::Head
            }
            (State::Head, b"") => match self.length {
                None => State::Size,
                Some(0) => State::Request,
                Some(length) => State::Body(length),
            },
            (State::Head, _) => self.after_header(line),
            (State::ChunkEnd, b"") => State::Size,
            (State::Size, _) => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
                let size = line.get(..digits).and_then(|digits| str::from_utf8(digits).ok());
                match size.map(|size| u64::from_str_radix(size, 16)) {
                    Some(Ok(0)) => State::Trailer,
                    Some(Ok(size)) => State::Chunk(size),
                    _ => State::Anything,
                }
            }
            (State::Trailer, _) => State::Trailer,
            _ => State::Anything,
        }
    }

    fn after_header(&mut self, line: &[u8]) -> State {
        // the library refuses a line without a colon
        let Some(colon) = memchr(b':', line) else { return State::Head };
        let (name, value) = line.split_at(colon);
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.length = None;
        } else if name.eq_ignore_ascii_case(b"content-length") && self.length.is_some() {
            let value = value.get(1..).and_then(|value| str::from_utf8(value).ok()).unwrap_or_default();
            let Ok(length) = value.trim().parse() else { return State::Anything };
            self.length = Some(length);
        }
        State::Head
    }
}

/// How many of the remaining bytes were read, and how many remain then.
fn taken(left: u64, read: usize) -> (usize, u64) {
    let read = usize::try_from(left).unwrap_or(usize::MAX).min(read);
    (read, left - read as u64)
}

#[cfg(test)]
mod tests {
    use super::LineEnds;

    /// The text that the library gets when it is read in chunks of this length.
    fn watched(text: &str, chunk: usize) -> String {
        let (mut ends, mut bytes) = (LineEnds::default(), text.as_bytes().to_vec());
        for chunk in bytes.chunks_mut(chunk) {
            ends.watch(chunk);
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_bare_line_feed_of_a_head_is_made_unreadable() {
        let post = "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
        let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\n\nab\r\n\r\n0\r\n";
        for (begin, end) in [
            ("", "GET / HTTP/1.1|host: a\n\n"),
            ("GET / HTTP/1.1\r\n", "host: a|b: c\r\n\r\n"),
            ("GET / HTTP/1.1\r\nhost: a\r\n", "|"),
            ("", "|GET / HTTP/1.1\r\n\r\n"),
            ("GET / HTTP/1.1\r\n\r\n\r\n", "GET / HTTP/1.1|\r\n"),
            (&format!("{post}a\nb\n"), "GET / HTTP/1.1|host: a\r\n\r\n"),
            (chunked, "a: b|\r\n"),
            (&format!("{chunked}a: b\r\n\r\n"), "GET / HTTP/1.1|\r\n\r\n"),
        ] {
            for chunk in [1, 2, 3, 7, 1000] {
                let text = format!("{begin}{}", end.replace('|', "\n"));
                let seen = format!("{begin}{}", end.replace('|', "\0"));
                assert_eq!(watched(&text, chunk), seen, "{chunk}");
            }
        }
    }

    #[test]
    fn everything_else_is_left_as_it_is() {
        for text in [
            "GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\ncontent-length: 6\r\n\r\na\nb\n\nc\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\n\n\n\r\nA\r\n\n23456789\n\r\n0\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n\n",
            "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n\n\n",
        ] {
            for chunk in [1, 5, 1000] {
                assert_eq!(watched(text, chunk), text);
            }
        }
    }
}
