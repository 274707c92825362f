//! GIF: every frame is decoded to its palette's indices and encoded again, so that the animation stays the same, colour
//! for colour.

use std::{fmt::Display, num::NonZeroU64};

use gif::{DecodeOptions, Decoder, Encoder, Frame, MemoryLimit};

use crate::{
    Format, MAX_ANIMATION_PIXELS, MAX_FRAMES, MAX_PIXELS, PictureRefusal, bounded_writer::BoundedWriter,
    dimensions::check_size,
};

/// Encodes an animation again; returns the bytes, and the canvas's width and height.
pub fn reencode(bytes: &[u8]) -> Result<(Vec<u8>, u32, u32), PictureRefusal> {
    let mut options = DecodeOptions::new();
    options.check_frame_consistency(true);
    options.set_memory_limit(NonZeroU64::new(MAX_PIXELS).map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes));
    let mut headers_only = options.clone();
    headers_only.skip_frame_decoding(true);
    check_limits(headers_only.read_info(bytes).map_err(malformed)?)?;

    let mut decoder = options.read_info(bytes).map_err(malformed)?;
    let (width, height) = (decoder.width(), decoder.height());
    let palette = decoder.global_palette().unwrap_or_default().to_vec();
    let mut out = BoundedWriter::default();
    let outcome = Encoder::new(&mut out, width, height, &palette)
        .map_err(malformed)
        .and_then(|mut encoder| copy(&mut decoder, &mut encoder));
    Ok((out.finish(outcome, Format::Gif)?, width.into(), height.into()))
}

/// Checks sizes and counts before any frame is decoded.
fn check_limits(mut decoder: Decoder<&[u8]>) -> Result<(), PictureRefusal> {
    check_size(decoder.width().into(), decoder.height().into())?;
    let (mut frames, mut pixels) = (0, 0);
    while let Some(frame) = decoder.next_frame_info().map_err(malformed)? {
        check_size(frame.width.into(), frame.height.into())?;
        frames += 1;
        pixels += u64::from(frame.width) * u64::from(frame.height);
        if frames > MAX_FRAMES || pixels > MAX_ANIMATION_PIXELS {
            return Err(PictureRefusal::TooManyPixels(format!(
                "There are more than {MAX_FRAMES} frames, or {MAX_ANIMATION_PIXELS} pixels in all frames."
            )));
        }
    }
    if frames == 0 {
        return Err(PictureRefusal::Malformed("The image has no frame.".to_owned()));
    }
    Ok(())
}

/// Copies the frames and the number of loops. Comments, texts and other extensions are dropped.
fn copy(
    decoder: &mut Decoder<&[u8]>,
    encoder: &mut Encoder<&mut BoundedWriter>,
) -> Result<(), PictureRefusal> {
    encoder.set_repeat(decoder.repeat()).map_err(malformed)?;
    while let Some(frame) = decoder.read_next_frame().map_err(malformed)? {
        // decoding has put interlaced lines in order
        let copied = Frame { interlaced: false, needs_user_input: false, ..frame.clone() };
        encoder.write_frame(&copied).map_err(malformed)?;
    }
    Ok(())
}

fn malformed(error: impl Display) -> PictureRefusal {
    PictureRefusal::Malformed(format!("The image is no valid GIF: {error}."))
}

#[cfg(test)]
mod tests {
    use gif::{Frame, Repeat};

    use super::*;
    use crate::samples::{SECRET, animation, frames, hold, stored};

    fn read(bytes: &[u8]) -> (Repeat, Vec<Frame<'static>>) {
        let mut decoder = DecodeOptions::new().read_info(bytes).unwrap();
        let repeat = decoder.repeat();
        let mut frames = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            frames.push(frame.clone());
        }
        (repeat, frames)
    }

    #[test]
    fn an_animation_keeps_its_frames_and_loops() {
        for repeat in [Repeat::Infinite, Repeat::Finite(3), Repeat::Finite(0)] {
            let picture = stored(Format::Gif, &animation(&frames(), repeat)).unwrap();
            assert!(!hold(&picture.bytes, SECRET));
            let (repeat_after, after) = read(&picture.bytes);
            assert_eq!(repeat_after, repeat);
            assert_eq!(format!("{after:?}"), format!("{:?}", frames()));
        }
    }

    #[test]
    fn interlaced_frames_keep_their_lines() {
        let lines: Vec<u8> = (0..16).flat_map(|line| [line % 2; 4]).collect();
        let plain = Frame { width: 4, height: 16, buffer: lines.clone().into(), ..Frame::default() };
        // lines 0, 8, then 4, 12, then every other even one, then the odd ones
        let order = [0, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15];
        let mixed: Vec<u8> = order.into_iter().flat_map(|line| [line % 2; 4]).collect();
        let interlaced = Frame { interlaced: true, buffer: mixed.into(), ..plain.clone() };
        let [plain, interlaced] = [plain, interlaced]
            .map(|frame| stored(Format::Gif, &animation(&[frame], Repeat::Infinite)).unwrap());
        assert_eq!(plain, interlaced);
    }

    #[test]
    fn frames_are_bounded() {
        let dot = Frame { width: 1, height: 1, buffer: vec![0].into(), ..Frame::default() };
        let many = |count| stored(Format::Gif, &animation(&vec![dot.clone(); count], Repeat::Infinite));
        assert!(many(MAX_FRAMES).is_ok());
        assert!(matches!(many(MAX_FRAMES + 1), Err(PictureRefusal::TooManyPixels(_))));
        assert!(matches!(
            stored(Format::Gif, b"GIF89a\x01\0\x01\0\0\0\0;"),
            Err(PictureRefusal::Malformed(_))
        ));
    }

    #[test]
    fn pixels_of_all_frames_are_bounded_before_they_are_decoded() {
        let of = |count| {
            let mut encoder = Encoder::new(Vec::new(), 4096, 4096, &[1, 2, 3]).unwrap();
            for _ in 0..count {
                // the header, and the coded data of one pixel
                let data = vec![2, 0x44, 1].into();
                let frame = Frame { width: 4096, height: 4096, buffer: data, ..Frame::default() };
                encoder.write_lzw_pre_encoded_frame(&frame).unwrap();
            }
            stored(Format::Gif, &encoder.into_inner().unwrap())
        };
        assert!(matches!(of(4), Err(PictureRefusal::Malformed(_))));
        assert!(matches!(of(5), Err(PictureRefusal::TooManyPixels(_))));
    }

    #[test]
    fn frames_stay_on_the_canvas() {
        let mut frames = frames();
        frames[1].left = 30;
        let outcome = stored(Format::Gif, &animation(&frames, Repeat::Infinite));
        assert!(matches!(outcome, Err(PictureRefusal::Malformed(_))));
    }
}
