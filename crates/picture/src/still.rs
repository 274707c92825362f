//! PNG, JPEG and WebP: one image is decoded, converted to sRGB, turned upright and encoded again.

use std::io::Cursor;

use image::{
    DynamicImage, ImageDecoder, ImageError, ImageResult, Limits, Pixel,
    codecs::{
        jpeg::{JpegDecoder, JpegEncoder},
        png::{CompressionType, FilterType, PngDecoder, PngEncoder},
        webp::{WebPDecoder, WebPEncoder},
    },
    metadata::Orientation,
};

use crate::{
    Format, MAX_PIXELS, MAX_SIDE, PictureRefusal, bounded_writer::BoundedWriter, colour::to_srgb,
    dimensions::check_size,
};

/// How many bytes the decoded pixels may have: four for each of [`MAX_PIXELS`].
const MAX_DECODED_BYTES: u64 = 4 * MAX_PIXELS;

/// The JPEG qualities, each tried if the one before gives too many bytes: an upload of a lower quality than the first
/// grows when encoded again.
const JPEG_QUALITIES: [u8; 4] = [90, 75, 60, 45];
/// The bits that a colour loses in WebP, each tried if the number before gives too many bytes: a lossy upload
/// grows manyfold in the lossless encoding, the only one that the library has.
const WEBP_BITS: [u8; 4] = [0, 1, 2, 3];
/// The PNG compression: results are little larger than with the usual 6, and the slowest images take a third
/// of the time.
const PNG_LEVEL: CompressionType = CompressionType::Level(3);

/// Encodes an image again; returns the bytes, and its width and height.
pub fn reencode(format: Format, bytes: &[u8]) -> Result<(Vec<u8>, u32, u32), PictureRefusal> {
    let reader = Cursor::new(bytes);
    let image = match format {
        Format::Png => decode(PngDecoder::with_limits(reader, limits())),
        Format::Webp => decode(WebPDecoder::new(reader)),
        _ => decode(JpegDecoder::new(reader)),
    }?;
    Ok((encode(format, &image)?, image.width(), image.height()))
}

fn encode(format: Format, image: &DynamicImage) -> Result<Vec<u8>, PictureRefusal> {
    match format {
        Format::Png => capped(format, |out| {
            image.write_with_encoder(PngEncoder::new_with_quality(out, PNG_LEVEL, FilterType::Adaptive))
        }),
        Format::Webp => first_within_limit(WEBP_BITS, |bits| {
            capped(format, |out| {
                with_fewer_bits(image, bits).write_with_encoder(WebPEncoder::new_lossless(out))
            })
        }),
        _ => first_within_limit(JPEG_QUALITIES, |quality| {
            capped(format, |out| image.write_with_encoder(JpegEncoder::new_with_quality(out, quality)))
        }),
    }
}

fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(MAX_SIDE);
    limits.max_image_height = Some(MAX_SIDE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    limits
}

fn decode(decoder: ImageResult<impl ImageDecoder>) -> Result<DynamicImage, PictureRefusal> {
    // only the headers have been read so far
    let mut decoder = decoder.map_err(to_refusal)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    if decoder.total_bytes() > MAX_DECODED_BYTES {
        return Err(PictureRefusal::TooManyPixels(format!(
            "{width} x {height} pixels of this depth are more than {MAX_DECODED_BYTES} bytes."
        )));
    }
    decoder.set_limits(limits()).map_err(to_refusal)?;
    // metadata is dropped in any case, so malformed metadata is no error
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let profile = decoder.icc_profile().ok().flatten();
    let mut image = DynamicImage::from_decoder(decoder).map_err(to_refusal)?;
    if let Some(profile) = profile {
        image = to_srgb(image, &profile);
    }
    image.apply_orientation(orientation);
    Ok(image)
}

fn to_refusal(error: ImageError) -> PictureRefusal {
    match error {
        ImageError::Limits(error) => {
            PictureRefusal::TooManyPixels(format!("The image is too large: {error}."))
        }
        error => PictureRefusal::Malformed(format!("The image is not valid: {error}.")),
    }
}

fn capped(
    format: Format,
    write: impl FnOnce(&mut BoundedWriter) -> ImageResult<()>,
) -> Result<Vec<u8>, PictureRefusal> {
    let mut out = BoundedWriter::default();
    let outcome = write(&mut out).map_err(to_refusal);
    out.finish(outcome, format)
}

fn first_within_limit(
    steps: [u8; 4],
    encode: impl Fn(u8) -> Result<Vec<u8>, PictureRefusal>,
) -> Result<Vec<u8>, PictureRefusal> {
    let [first, further @ ..] = steps;
    further.into_iter().fold(encode(first), |outcome, step| match outcome {
        Err(PictureRefusal::TooLarge(_)) => encode(step),
        other => other,
    })
}

/// The image with `bits` bits less in each colour; black and white do not change.
fn with_fewer_bits(image: &DynamicImage, bits: u8) -> DynamicImage {
    let mut image = image.clone();
    let reduce = |value: u8| {
        let high_bits = value >> bits;
        if bits == 0 { value } else { (high_bits << bits) | (high_bits >> (8 - 2 * bits)) }
    };
    match &mut image {
        DynamicImage::ImageRgb8(colours) => colours.pixels_mut().for_each(|pixel| pixel.apply(reduce)),
        DynamicImage::ImageRgba8(colours) => {
            colours.pixels_mut().for_each(|pixel| pixel.apply_without_alpha(reduce));
        }
        _ => {}
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_BYTES, samples::noise};

    #[test]
    fn lossy_formats_lose_quality_to_fit() {
        for (format, side) in [(Format::Webp, 620), (Format::Jpeg, 800)] {
            let image = noise(side, side);
            let finest = capped(format, |out| match format {
                Format::Webp => image.write_with_encoder(WebPEncoder::new_lossless(out)),
                _ => image.write_with_encoder(JpegEncoder::new_with_quality(out, JPEG_QUALITIES[0])),
            });
            assert!(matches!(finest, Err(PictureRefusal::TooLarge(_))));
            let bytes = encode(format, &image).unwrap();
            assert!(bytes.len() <= MAX_BYTES);
            assert_eq!(image::load_from_memory(&bytes).unwrap().width(), side);
        }
    }

    #[test]
    fn images_that_cannot_fit_are_rejected() {
        for (format, side) in [(Format::Webp, 760), (Format::Png, 600)] {
            assert!(matches!(encode(format, &noise(side, side)), Err(PictureRefusal::TooLarge(_))));
        }
    }

    #[test]
    fn images_that_fit_are_unchanged() {
        let image = noise(100, 100);
        for format in [Format::Png, Format::Webp] {
            let bytes = encode(format, &image).unwrap();
            assert_eq!(image::load_from_memory(&bytes).unwrap().to_rgb8(), image.to_rgb8());
        }
    }

    #[test]
    fn fewer_bits_keep_black_white_and_alpha() {
        let pixels = image::RgbaImage::from_raw(2, 1, vec![0, 255, 100, 77, 1, 254, 103, 3]).unwrap();
        let after = with_fewer_bits(&pixels.into(), 3).to_rgba8();
        assert_eq!(after.into_raw(), [0, 255, 99, 77, 0, 255, 99, 3]);
    }
}
