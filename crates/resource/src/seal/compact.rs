//! Compression of texts that are stored with every change: the contents of audit entries and the envelopes of
//! events. Most of such a text is names of members, so it is compressed with a dictionary of typical texts (zstd,
//! RFC 8878).

use std::{borrow::Cow, cell::RefCell, sync::LazyLock};

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
use zstd::{
    bulk::{Compressor, Decompressor},
    dict::{DecoderDictionary, EncoderDictionary},
    zstd_safe::get_frame_content_size,
};

/// The typical texts. What is stored cannot be read without them: never change them, add another version.
const DICTIONARY: &[u8] = include_bytes!("dictionary-1.txt");
/// The version of the dictionary, the first byte of compressed text.
const VERSION: u8 = 1;
/// The level of compression: higher ones take more time, and make these texts no shorter.
const LEVEL: i32 = 1;
/// The maximum length of a text, in bytes: that of a line of an export.
const MAX_TEXT: u64 = chancery_ledger::MAX_LINE;

/// The first character of a column with compressed text. No text of a caller can contain it.
pub const MARK: char = '\u{2}';

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    // their tables are as large as a thousand of these texts
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> =
        RefCell::new(Compressor::with_prepared_dictionary(&ENCODER).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> =
        RefCell::new(Decompressor::with_prepared_dictionary(&DECODER).ok());
}

/// Compresses a text; `None` where that makes it no shorter.
pub fn compress(text: &str) -> Option<Vec<u8>> {
    let frame =
        COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut()?.compress(text.as_bytes()).ok())?;
    let mut compressed = Vec::with_capacity(frame.len() + 1);
    compressed.push(VERSION);
    compressed.extend_from_slice(&frame);
    (compressed.len() < text.len()).then_some(compressed)
}

/// The text that [`compress`] compressed; `None` for anything else, and for a text that is too long.
pub fn decompress(compressed: &[u8]) -> Option<String> {
    let (&VERSION, frame) = compressed.split_first()? else { return None };
    let length = get_frame_content_size(frame).ok()??;
    let capacity = usize::try_from(length).ok().filter(|_| length <= MAX_TEXT)?;
    let text = DECOMPRESSOR
        .with_borrow_mut(|decompressor| decompressor.as_mut()?.decompress(frame, capacity).ok())?;
    String::from_utf8(text).ok()
}

/// A text as it is stored in a column that is not encrypted: compressed where that makes it shorter.
pub fn stored_text(text: String) -> String {
    let encode = |compressed| format!("{MARK}{}", BASE64_STANDARD_NO_PAD.encode(compressed));
    compress(&text).map(encode).filter(|stored| stored.len() < text.len()).unwrap_or(text)
}

/// The text that [`stored_text`] stored, or that was stored as it is; `None` where it cannot be read.
pub fn read_text(stored: &str) -> Option<Cow<'_, str>> {
    let Some(compressed) = stored.strip_prefix(MARK) else { return Some(stored.into()) };
    decompress(&BASE64_STANDARD_NO_PAD.decode(compressed).ok()?).map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::digest::{SHA256, digest};
    use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};
    use proptest::{collection::vec, prelude::*};

    use super::{DICTIONARY, MARK, VERSION, compress, decompress, read_text, stored_text};

    const ENVELOPE: &str = r#"{"specversion":"1.0","id":"1796050948037123","type":"platform.userstore.user.updated","subject":"01a22cfa-8fbf-7055-afda-b8121faa58b7","time":"2026-11-30T15:02:28.037Z","datacontenttype":"application/json","data":{"id":"01a22cfa-8fbf-7055-afda-b8121faa58b7","actor":"01a22cfa-8bd8-7004-9b28-bf34d5cde0fc","changed":["nickname"]}}"#;

    #[test]
    fn the_dictionary_is_the_one_that_stored_texts_need() {
        let digest = BASE64_STANDARD_NO_PAD.encode(digest(&SHA256, DICTIONARY));
        assert_eq!(digest, "vez+P8tI1idx5NYFNCpYHpj+FI+Xvm8HnpqLIUKhRpo");
    }

    #[test]
    fn an_event_is_stored_in_less_than_half_of_its_length() {
        let stored = stored_text(ENVELOPE.to_owned());
        assert!(stored.len() * 2 < ENVELOPE.len(), "{}", stored.len());
        assert_eq!(read_text(&stored).unwrap(), ENVELOPE);
    }

    #[test]
    fn a_text_that_was_stored_as_it_is_is_read_as_it_is() {
        assert_eq!(read_text(ENVELOPE).unwrap(), ENVELOPE);
        assert_eq!(stored_text("127.0.0.1".to_owned()), "127.0.0.1");
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_memory_is_allocated() {
        // the header of a frame that has a content of 2^40 bytes (RFC 8878, section 3.1.1)
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0];
        assert_eq!(decompress(&[&[VERSION], frame.as_slice()].concat()), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was(text in "\\PC{0,2000}") {
            let stored = stored_text(text.clone());
            prop_assert!(stored.len() <= text.len());
            prop_assert_eq!(read_text(&stored).unwrap(), text);
        }

        #[test]
        fn bytes_that_nothing_compressed_are_refused(bytes in vec(any::<u8>(), 0..200)) {
            let _ = decompress(&bytes);
            let mut compressed = compress(ENVELOPE).unwrap();
            let end = compressed.len().saturating_sub(bytes.len() % compressed.len() + 1);
            compressed.truncate(end);
            prop_assert_eq!(decompress(&compressed), None);
            let unreadable = format!("{MARK}*");
            prop_assert_eq!(read_text(&unreadable), None);
        }
    }
}
