//! The normalized image, which is stored and served.

use aws_lc_rs::digest::{SHA256, digest};

use crate::{Format, MAX_BYTES, PictureRefusal, Upload, animation, extent::image_bytes, still};

/// An image as it is stored: pixels, without metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The format, that of the upload.
    pub format: Format,
    /// The content type to serve it with.
    pub content_type: &'static str,
    /// The image's bytes, at most [`MAX_BYTES`].
    pub bytes: Vec<u8>,
    /// The width in pixels, as shown.
    pub width: u32,
    /// The height in pixels, as shown.
    pub height: u32,
    /// The SHA-256 of `bytes`, e.g. for an ETag.
    pub sha256: [u8; 32],
}

/// Checks an image and encodes it again in its own format: in sRGB by its colour profile, turned upright by its metadata,
/// then without any metadata, the profile included, and without trailing bytes. The same upload always gives the same
/// bytes.
///
/// # Errors
/// The image is not of its content type, is damaged or truncated, exceeds the limits of this crate, or is too large when
/// encoded again. To avoid the last, JPEG loses quality and WebP up to three bits of each colour; PNG and GIF do not
/// change.
pub fn normalize(upload: &Upload) -> Result<Picture, PictureRefusal> {
    let Upload { content_type: format, bytes } = upload;
    if bytes.len() > MAX_BYTES {
        return Err(PictureRefusal::TooLarge(format!("The image has more than {MAX_BYTES} bytes.")));
    }
    let detected = Format::of_content(bytes);
    if detected != Some(*format) {
        return Err(PictureRefusal::TypeMismatch(format!(
            "The content type says {}; the content is {}.",
            format.content_type(),
            detected.map_or("no image that is taken", Format::content_type)
        )));
    }
    let image = image_bytes(*format, bytes)?;
    let (bytes, width, height) = match format {
        Format::Gif => animation::reencode(image),
        still => still::reencode(*still, image),
    }?;
    let mut sha256 = [0; 32];
    sha256.copy_from_slice(digest(&SHA256, &bytes).as_ref());
    Ok(Picture { format: *format, content_type: format.content_type(), bytes, width, height, sha256 })
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    use super::*;
    use crate::samples::{SECRET, chunk, encoded, exif, hold, noise, sample, stored, two_halves};

    #[test]
    fn each_format_is_preserved() {
        for format in Format::ALL {
            let picture = stored(format, &sample(format)).unwrap();
            assert_eq!((picture.format, picture.width, picture.height), (format, 32, 16));
            assert_eq!(picture.content_type, format.content_type());
            assert_eq!(Format::of_content(&picture.bytes), Some(format));
            assert_eq!(digest(&SHA256, &picture.bytes).as_ref(), picture.sha256);
            assert_eq!(stored(format, &sample(format)).unwrap(), picture);
        }
    }

    /// The smallest images by other encoders, published for feature tests of browsers.
    #[test]
    fn images_of_other_encoders_are_accepted() {
        for (format, image) in [
            (Format::Gif, "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
            (Format::Webp, "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"),
            (
                Format::Webp,
                "UklGRlIAAABXRUJQVlA4WAoAAAASAAAAAAAAAAAAQU5JTQYAAAD/////AABBTk1GJgAAAAAAAAAAAAAAAAAAAGQAAABWUDhMDQAAAC8AAAAQBxAREYiI/gcA",
            ),
            (
                Format::Png,
                "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            ),
        ] {
            let picture = stored(format, &STANDARD.decode(image).unwrap()).unwrap();
            assert_eq!((picture.format, picture.width, picture.height), (format, 1, 1));
        }
    }

    #[test]
    fn content_must_match_its_type() {
        for declared in Format::ALL {
            for content in Format::ALL.into_iter().filter(|content| *content != declared) {
                let outcome = stored(declared, &sample(content));
                assert!(matches!(outcome, Err(PictureRefusal::TypeMismatch(_))), "{declared:?} {content:?}");
            }
            for content in [&b"<svg/>"[..], b"<!doctype html>", b"PK\x03\x04", b""] {
                assert!(matches!(stored(declared, content), Err(PictureRefusal::TypeMismatch(_))));
            }
        }
    }

    #[test]
    fn metadata_and_trailing_bytes_are_removed() {
        let image = two_halves(32, 16);
        for format in Format::ALL {
            let plain = stored(format, &encoded(format, &image, None)).unwrap();
            let mut bytes = encoded(format, &image, Some(exif(1)));
            bytes.extend_from_slice(b"PK\x03\x04");
            bytes.extend_from_slice(SECRET);
            assert!(hold(&bytes, SECRET));
            // not a byte differs, so no metadata is left
            assert_eq!(stored(format, &bytes).unwrap(), plain);
            assert!(!hold(&plain.bytes, SECRET));
        }
    }

    #[test]
    fn png_drops_all_other_chunks() {
        let plain = sample(Format::Png);
        let (head, rest) = plain.split_at(33);
        let text = [b"Comment\0".as_slice(), SECRET].concat();
        let texts = [chunk(*b"tEXt", &text), chunk(*b"prVt", SECRET), chunk(*b"eXIf", &exif(1))].concat();
        let bytes = [head, &texts, rest].concat();
        assert_eq!(stored(Format::Png, &bytes), stored(Format::Png, &plain));
    }

    #[test]
    fn images_are_turned_upright() {
        let image = two_halves(32, 16);
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let picture = stored(format, &encoded(format, &image, Some(exif(6)))).unwrap();
            assert_eq!((picture.width, picture.height), (16, 32), "{format:?}");
            let upright = image::load_from_memory(&picture.bytes).unwrap().to_rgb8();
            assert_eq!(upright.dimensions(), (16, 32));
            // the left side is on top now
            assert!(upright.get_pixel(8, 4)[0] > 200 && upright.get_pixel(8, 28)[2] > 200);
        }
    }

    #[test]
    fn truncated_images_are_rejected() {
        for format in Format::ALL {
            let whole = sample(format);
            for length in 0..whole.len() {
                let outcome = stored(format, &whole[..length]);
                assert!(
                    matches!(outcome, Err(PictureRefusal::Malformed(_) | PictureRefusal::TypeMismatch(_))),
                    "{format:?} {length} of {}",
                    whole.len()
                );
            }
        }
    }

    /// The sample, with another size in its header.
    fn with_header_size(format: Format, width: u16, height: u16) -> Vec<u8> {
        let mut bytes = sample(format);
        let (wide, high) = (width.to_be_bytes(), height.to_be_bytes());
        match format {
            Format::Png => {
                let size = [0, 0, wide[0], wide[1], 0, 0, high[0], high[1]];
                let header = chunk(*b"IHDR", &[&size, &bytes[24..29]].concat());
                bytes[8..33].copy_from_slice(&header);
            }
            Format::Jpeg => {
                let frame = bytes.windows(4).position(|window| window == [0xff, 0xc0, 0, 17]).unwrap();
                bytes[frame + 5..frame + 9].copy_from_slice(&[high[0], high[1], wide[0], wide[1]]);
            }
            Format::Webp => {
                let size = u32::from(width - 1) & 0x3fff | (u32::from(height - 1) & 0x3fff) << 14;
                bytes[21..25].copy_from_slice(&size.to_le_bytes());
            }
            Format::Gif => bytes[6..10].copy_from_slice(&[wide[1], wide[0], high[1], high[0]]),
        }
        bytes
    }

    #[test]
    fn pixels_are_bounded_before_they_are_decoded() {
        for format in Format::ALL {
            assert_eq!(stored(format, &with_header_size(format, 32, 16)), stored(format, &sample(format)));
            for (width, height) in [(16383, 16383), (4097, 1), (1, 4097)] {
                let outcome = stored(format, &with_header_size(format, width, height));
                assert!(matches!(outcome, Err(PictureRefusal::TooManyPixels(_))), "{format:?} {outcome:?}");
            }
        }
        for format in [Format::Png, Format::Jpeg, Format::Gif] {
            let outcome = stored(format, &with_header_size(format, 0, 0));
            assert!(matches!(outcome, Err(PictureRefusal::Malformed(_))), "{format:?} {outcome:?}");
        }
    }

    #[test]
    fn bytes_are_bounded() {
        let large = encoded(Format::Png, &noise(700, 700), None);
        assert!(matches!(stored(Format::Png, &large), Err(PictureRefusal::TooLarge(_))));
    }

    fn check_stored(format: Format, bytes: &[u8]) -> Result<(), TestCaseError> {
        if let Ok(picture) = stored(format, bytes) {
            prop_assert!(picture.bytes.len() <= MAX_BYTES);
            let again = stored(format, &picture.bytes);
            let again = again.map_err(|refused| TestCaseError::fail(refused.to_string()))?;
            prop_assert_eq!((again.width, again.height), (picture.width, picture.height));
            prop_assert!(!hold(&picture.bytes, SECRET));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn one_changed_byte_is_handled(
            format in prop::sample::select(Format::ALL.to_vec()),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = encoded(format, &two_halves(24, 18), Some(exif(6)));
            *at.get_mut(&mut bytes) = byte;
            check_stored(format, &bytes)?;
        }

        #[test]
        fn random_bytes_are_handled(
            format in prop::sample::select(Format::ALL.to_vec()),
            prefix_length in any::<prop::sample::Index>(),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut start = sample(format);
            start.truncate(prefix_length.index(start.len()));
            start.extend(bytes);
            check_stored(format, &start)?;
        }
    }
}
