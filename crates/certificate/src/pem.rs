//! PEM (RFC 7468): blocks of base64 between lines that name them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use crate::{MAX_CERTIFICATES, UploadRefusal};

/// One block of a PEM text.
pub struct Block<'a> {
    pub label: &'a str,
    pub content: Zeroizing<Vec<u8>>,
    /// The line at which the block begins, counted from 1.
    pub line: usize,
}

/// Whether bytes look like PEM: they contain the beginning of a block.
pub fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(BEGIN.len()).any(|window| window == BEGIN.as_bytes())
}

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const RULE: &str = "-----";
/// The most blocks that are read: the certificates, and others such as the key and its parameters.
const MAX_BLOCKS: usize = 2 * MAX_CERTIFICATES;

/// The mark that some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines with their numbers, without white space around them. A line ends with CR, LF or both. One that is no UTF-8 is
/// a mark that no block holds.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &str)> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let numbered = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let all =
        numbered.flat_map(|(number, line)| line.split(|byte| *byte == b'\r').map(move |line| (number, line)));
    all.map(|(number, line)| (number, str::from_utf8(line).unwrap_or("?").trim()))
}

/// Reads the blocks. Text around them is skipped, as other tools write some there; but no block is overlooked.
pub fn blocks(bytes: &[u8]) -> Result<Vec<Block<'_>>, UploadRefusal> {
    let mut blocks = Vec::new();
    let mut lines = lines(bytes);
    while let Some((begin, line)) = lines.next() {
        let Some(label) = line.strip_prefix(BEGIN) else {
            if line.contains(BEGIN) || line.starts_with(END) {
                return Err(UploadRefusal::BrokenPem(begin));
            }
            continue;
        };
        let label = label.strip_suffix(RULE).ok_or(UploadRefusal::BrokenPem(begin))?;
        if blocks.len() == MAX_BLOCKS {
            return Err(UploadRefusal::TooManyCertificates);
        }
        // capacity for all of it at once: reallocation would leave copies of the secret behind
        let mut digits = Zeroizing::new(String::with_capacity(bytes.len()));
        loop {
            let (number, line) = lines.next().ok_or(UploadRefusal::BrokenPem(begin))?;
            if let Some(end) = line.strip_prefix(END) {
                if end.strip_suffix(RULE) == Some(label) {
                    break;
                }
                return Err(UploadRefusal::BrokenPem(number));
            }
            // the old encryption of OpenSSL: by a single MD5, without iterations
            if line.starts_with("Proc-Type:") {
                return Err(UploadRefusal::UnsupportedProtection);
            }
            let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
            if !line.bytes().all(is_digit) {
                return Err(UploadRefusal::BrokenPem(number));
            }
            digits.push_str(line);
        }
        let content = STANDARD.decode(digits.as_bytes()).map_err(|_| UploadRefusal::BrokenPem(begin))?;
        blocks.push(Block { label, content: Zeroizing::new(content), line: begin });
    }
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::blocks;
    use crate::UploadRefusal;

    fn read(text: &str) -> Result<Vec<(String, Vec<u8>)>, UploadRefusal> {
        let blocks = blocks(text.as_bytes())?;
        Ok(blocks.into_iter().map(|block| (block.label.to_owned(), block.content.to_vec())).collect())
    }

    #[test]
    fn blocks_are_read_among_other_text() {
        let text = "Bag Attributes\r\n-----BEGIN A B-----\r\nAQ\r\nID\r\n-----END A B-----\n\n-----BEGIN C-----\n-----END C-----";
        assert_eq!(read(text), Ok(vec![("A B".into(), vec![1, 2, 3]), ("C".into(), vec![])]));
        assert_eq!(read("nothing"), Ok(vec![]));
        let old = "\u{feff}-----BEGIN A-----\rAQID\r-----END A-----\r";
        assert_eq!(read(old), Ok(vec![("A".into(), vec![1, 2, 3])]));
        let latin = b"friendlyName: J\xf6rg\n-----BEGIN A-----\nAQID\n-----END A-----";
        assert_eq!(blocks(latin).unwrap().len(), 1);
    }

    #[test]
    fn a_broken_block_names_its_line() {
        for (text, line) in [
            ("\n-----BEGIN A----\nAQID\n-----END A-----", 2),
            ("-----BEGIN A-----\nAQID\n", 1),
            ("-----BEGIN A-----\nAQID\n-----END B-----", 3),
            ("-----BEGIN A-----\nAQID\n-----BEGIN A-----\nAQID\n-----END A-----", 3),
            ("-----BEGIN A-----\nAQID\nA!==\n-----END A-----", 3),
            ("-----BEGIN A-----\nAQI\n-----END A-----", 1),
            ("\nwords -----BEGIN A-----\nAQID\n-----END A-----", 2),
            ("\n\n-----END A-----", 3),
        ] {
            assert_eq!(read(text), Err(UploadRefusal::BrokenPem(line)), "{text}");
        }
        let broken = b"-----BEGIN A-----\nAQ\xff\n-----END A-----";
        assert!(matches!(blocks(broken), Err(UploadRefusal::BrokenPem(2))));
    }

    #[test]
    fn the_old_encryption_is_refused() {
        let text = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: X\n\nAQID\n-----END RSA PRIVATE KEY-----";
        assert_eq!(read(text), Err(UploadRefusal::UnsupportedProtection));
    }
}
