//! The end of an image in its bytes. Decoders do not check it, and accept images that are cut off or followed
//! by other data.

use crate::{Format, PictureRefusal};

/// How many scans a JPEG may have. A scan of a few bytes may cost a pass over all pixels; encoders write
/// about ten.
const MAX_SCANS: usize = 64;

/// The bytes of the image, without any that follow it.
pub fn image_bytes(format: Format, bytes: &[u8]) -> Result<&[u8], PictureRefusal> {
    let end = match format {
        Format::Png => png(bytes),
        Format::Jpeg => jpeg(bytes)?,
        Format::Webp => webp(bytes),
        // the decoder reads the frames up to the trailer, and nothing after it
        Format::Gif => Some(bytes.len()),
    };
    end.and_then(|end| bytes.get(..end))
        .ok_or_else(|| PictureRefusal::Malformed("The image is cut off.".to_owned()))
}

/// The end of a PNG: chunks of length, type, data and checksum, after eight bytes of signature.
fn png(bytes: &[u8]) -> Option<usize> {
    let mut at = 8_usize;
    loop {
        let [a, b, c, d, kind @ ..] = *bytes.get(at..)?.first_chunk::<8>()?;
        at = at.checked_add(12)?.checked_add(usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?)?;
        if &kind == b"IEND" {
            return Some(at);
        }
    }
}

/// The end of a JPEG: segments with a marker and a length; a scan is followed by coded data without markers,
/// but for those of its restarts (ITU-T T.81, B.1.1).
fn jpeg(bytes: &[u8]) -> Result<Option<usize>, PictureRefusal> {
    let mut scans = 0;
    let mut at = 2;
    while let Some([0xff, marker, ..]) = bytes.get(at..) {
        match marker {
            0xd9 => return Ok(Some(at + 2)),
            // a fill byte is one byte; stuffing, TEM, restarts and a second start are two
            0xff => at += 1,
            0x00 | 0x01 | 0xd0..=0xd8 => at += 2,
            marker => {
                if *marker == 0xda {
                    scans += 1;
                    if scans > MAX_SCANS {
                        return Err(PictureRefusal::Malformed(format!(
                            "There are more than {MAX_SCANS} scans."
                        )));
                    }
                }
                let Some([high, low]) = bytes.get(at + 2..).and_then(<[u8]>::first_chunk) else { break };
                at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
            }
        }
        let Some(distance) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == 0xff))
        else {
            break;
        };
        at += distance;
    }
    Ok(None)
}

/// The end of a WebP: one RIFF chunk, padded to an even length (RFC 9649, section 2.3).
fn webp(bytes: &[u8]) -> Option<usize> {
    let size = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    usize::try_from(size).ok()?.checked_add(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::sample;

    #[test]
    fn trailing_bytes_are_cut_off() {
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let image = sample(format);
            let longer = [&image, &b"\xff\xd9more"[..]].concat();
            assert_eq!(image_bytes(format, &longer), Ok(&image[..]));
        }
    }

    #[test]
    fn scans_are_bounded() {
        let image = sample(Format::Jpeg);
        let scan = image.windows(2).position(|window| window == [0xff, 0xda]).unwrap();
        let (head, tail) = image.split_at(scan);
        let scan = &tail[..tail.len() - 2];
        let with = |count: usize| [head, &scan.repeat(count), b"\xff\xd9"].concat();
        assert!(image_bytes(Format::Jpeg, &with(MAX_SCANS)).is_ok());
        assert!(image_bytes(Format::Jpeg, &with(MAX_SCANS + 1)).is_err());
    }
}
