//! Images for the tests.

use std::borrow::Cow;

use gif::{DisposalMethod, Encoder, Repeat};
use image::{
    DynamicImage, ImageEncoder, RgbImage,
    codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
};

use crate::{Format, Picture, PictureRefusal, Upload, normalize};

/// Metadata that no stored image may contain.
pub const SECRET: &[u8] = b"where-it-was-taken";

/// An image that is red on the left and blue on the right.
pub fn two_halves(width: u32, height: u32) -> DynamicImage {
    RgbImage::from_fn(width, height, |x, _| image::Rgb(if x < width / 2 { [255, 0, 0] } else { [0, 0, 255] }))
        .into()
}

/// An image of pseudo-random pixels, which do not compress; the same each time.
pub fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [red, green, blue, ..] = state.to_be_bytes();
        image::Rgb([red, green, blue])
    })
    .into()
}

/// Metadata with an orientation (EXIF 2.32, tag 0x0112), followed by the secret.
pub fn exif(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x00\0\0\0\0\0\0".to_vec();
    exif[19] = orientation;
    exif.extend_from_slice(SECRET);
    exif
}

/// The image encoded, with this metadata, if any.
pub fn encoded(format: Format, image: &DynamicImage, exif: Option<Vec<u8>>) -> Vec<u8> {
    fn with(mut encoder: impl ImageEncoder, image: &DynamicImage, exif: Option<Vec<u8>>) {
        if let Some(exif) = exif {
            encoder.set_exif_metadata(exif).unwrap();
            encoder.set_icc_profile(SECRET.to_vec()).unwrap();
        }
        image.write_with_encoder(encoder).unwrap();
    }
    let mut out = Vec::new();
    match format {
        Format::Png => with(PngEncoder::new(&mut out), image, exif),
        Format::Jpeg => with(JpegEncoder::new_with_quality(&mut out, 80), image, exif),
        Format::Webp => with(WebPEncoder::new_lossless(&mut out), image, exif),
        Format::Gif => return animation(&frames(), Repeat::Infinite),
    }
    out
}

/// A small valid image.
pub fn sample(format: Format) -> Vec<u8> {
    encoded(format, &two_halves(32, 16), None)
}

/// Three frames that differ in every property of a frame; the canvas is 32 x 16.
pub fn frames() -> Vec<gif::Frame<'static>> {
    let frame = |width: u16, height: u16, index: u8| gif::Frame {
        width,
        height,
        buffer: Cow::Owned(vec![index; usize::from(width) * usize::from(height)]),
        ..gif::Frame::default()
    };
    vec![
        gif::Frame { delay: 10, ..frame(32, 16, 1) },
        gif::Frame {
            delay: 250,
            left: 4,
            top: 2,
            dispose: DisposalMethod::Background,
            transparent: Some(0),
            ..frame(8, 8, 0)
        },
        gif::Frame {
            dispose: DisposalMethod::Previous,
            palette: Some(vec![9, 8, 7, 6, 5, 4]),
            ..frame(1, 1, 1)
        },
    ]
}

/// A GIF of these frames, with comments and other extensions that contain the secret.
pub fn animation(frames: &[gif::Frame<'_>], repeat: Repeat) -> Vec<u8> {
    let (width, height) = (frames[0].width, frames[0].height);
    let mut encoder = Encoder::new(Vec::new(), width, height, &[1, 2, 3, 4, 5, 6]).unwrap();
    encoder.set_repeat(repeat).unwrap();
    for frame in frames {
        encoder.write_raw_extension(gif::Extension::Comment.into(), &[SECRET]).unwrap();
        encoder.write_raw_extension(gif::Extension::Application.into(), &[b"XMP DataXMP", SECRET]).unwrap();
        encoder.write_frame(frame).unwrap();
    }
    encoder.into_inner().unwrap()
}

/// The result of [`normalize`] for these bytes.
pub fn stored(content_type: Format, bytes: &[u8]) -> Result<Picture, PictureRefusal> {
    normalize(&Upload { content_type, bytes: bytes.to_vec() })
}

/// Whether the bytes contain the part.
pub fn hold(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A PNG chunk, with its checksum (ISO/IEC 15948, annex D).
pub fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [&kind, data].concat();
    let sum = checked.iter().fold(!0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    });
    let length = u32::try_from(data.len()).unwrap().to_be_bytes();
    [&length, checked.as_slice(), &(!sum).to_be_bytes()].concat()
}
