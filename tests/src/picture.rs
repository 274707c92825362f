//! A picture that is sent as the image of a user.

use base64::{Engine as _, prelude::BASE64_STANDARD};

/// One grey pixel, with a text chunk that says who made it.
pub fn png() -> Vec<u8> {
    png_by("Ada")
}

/// The same, by another author.
pub fn png_by(author: &str) -> Vec<u8> {
    let plain =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==";
    let plain = BASE64_STANDARD.decode(plain).unwrap();
    // the chunk stands after the header, whose end is at 33
    let text = format!("tEXtAuthor\0{author}").into_bytes();
    let mut chunk = u32::try_from(text.len() - 4).unwrap().to_be_bytes().to_vec();
    chunk.extend_from_slice(&text);
    chunk.extend_from_slice(&crc(&text).to_be_bytes());
    [&plain[..33], &chunk, &plain[33..]].concat()
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}
