//! Colours: the image's profile is applied to its pixels, because a stored image has no profile and is shown as sRGB.

use image::{DynamicImage, ImageBuffer, Rgb, RgbImage, Rgba, RgbaImage};
use moxcms::{ColorProfile, DataColorSpace, Layout, TransformExecutor, TransformOptions};

/// The image in sRGB. An invalid profile, or one for another colour space than the pixels', is ignored.
pub fn to_srgb(image: DynamicImage, profile: &[u8]) -> DynamicImage {
    converted(&image, profile).unwrap_or(image)
}

fn converted(image: &DynamicImage, profile: &[u8]) -> Option<DynamicImage> {
    let profile = ColorProfile::new_from_slice(profile).ok()?;
    let own = if image.color().has_color() { DataColorSpace::Rgb } else { DataColorSpace::Gray };
    if profile.color_space != own {
        return None;
    }
    let (width, height) = (image.width(), image.height());
    let (srgb, options) = (ColorProfile::new_srgb(), TransformOptions::default());
    let eight = |from, to| profile.create_transform_8bit(from, &srgb, to, options).ok();
    let sixteen = |from, to| profile.create_transform_16bit(from, &srgb, to, options).ok();
    let rgb = |pixels| RgbImage::from_raw(width, height, pixels).map(DynamicImage::from);
    let rgba = |pixels| RgbaImage::from_raw(width, height, pixels).map(DynamicImage::from);
    let deep_rgb =
        |pixels| ImageBuffer::<Rgb<u16>, _>::from_raw(width, height, pixels).map(DynamicImage::from);
    let deep_rgba =
        |pixels| ImageBuffer::<Rgba<u16>, _>::from_raw(width, height, pixels).map(DynamicImage::from);
    // grey is converted to three equal values, and back to grey
    match image {
        DynamicImage::ImageRgb8(from) => rgb(run(&*eight(Layout::Rgb, Layout::Rgb)?, from, 3, 3)?),
        DynamicImage::ImageRgba8(from) => rgba(run(&*eight(Layout::Rgba, Layout::Rgba)?, from, 4, 4)?),
        DynamicImage::ImageLuma8(from) => {
            Some(rgb(run(&*eight(Layout::Gray, Layout::Rgb)?, from, 1, 3)?)?.to_luma8().into())
        }
        DynamicImage::ImageLumaA8(from) => {
            Some(rgba(run(&*eight(Layout::GrayAlpha, Layout::Rgba)?, from, 2, 4)?)?.to_luma_alpha8().into())
        }
        DynamicImage::ImageRgb16(from) => deep_rgb(run(&*sixteen(Layout::Rgb, Layout::Rgb)?, from, 3, 3)?),
        DynamicImage::ImageRgba16(from) => {
            deep_rgba(run(&*sixteen(Layout::Rgba, Layout::Rgba)?, from, 4, 4)?)
        }
        DynamicImage::ImageLuma16(from) => {
            Some(deep_rgb(run(&*sixteen(Layout::Gray, Layout::Rgb)?, from, 1, 3)?)?.to_luma16().into())
        }
        DynamicImage::ImageLumaA16(from) => {
            let coloured = deep_rgba(run(&*sixteen(Layout::GrayAlpha, Layout::Rgba)?, from, 2, 4)?)?;
            Some(coloured.to_luma_alpha16().into())
        }
        _ => None,
    }
}

/// The samples after a transform between pixels of these numbers of channels.
fn run<T: Copy + Default>(
    transform: &(impl TransformExecutor<T> + ?Sized),
    from: &[T],
    channels: usize,
    channels_after: usize,
) -> Option<Vec<T>> {
    let mut after = vec![T::default(); from.len() / channels * channels_after];
    transform.transform(from, &mut after).ok()?;
    Some(after)
}

#[cfg(test)]
mod tests {
    use image::{
        DynamicImage, GrayImage, ImageEncoder, RgbImage,
        codecs::{jpeg::JpegEncoder, png::PngEncoder, webp::WebPEncoder},
    };
    use moxcms::ColorProfile;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::to_srgb;
    use crate::{Format, samples::stored};

    fn plain() -> DynamicImage {
        RgbImage::from_pixel(32, 16, image::Rgb([200, 60, 40])).into()
    }

    /// The image encoded with this profile, as it is stored.
    fn reencoded(format: Format, image: &DynamicImage, profile: &ColorProfile) -> RgbImage {
        fn with(mut encoder: impl ImageEncoder, image: &DynamicImage, profile: &ColorProfile) {
            encoder.set_icc_profile(profile.encode().unwrap()).unwrap();
            image.write_with_encoder(encoder).unwrap();
        }
        let mut out = Vec::new();
        match format {
            Format::Png => with(PngEncoder::new(&mut out), image, profile),
            Format::Webp => with(WebPEncoder::new_lossless(&mut out), image, profile),
            _ => with(JpegEncoder::new_with_quality(&mut out, 100), image, profile),
        }
        image::load_from_memory(&stored(format, &out).unwrap().bytes).unwrap().to_rgb8()
    }

    /// Display P3 (200, 60, 40) is sRGB (218, 43, 21), give or take what rounding and JPEG do.
    #[test]
    fn a_profile_is_applied_to_the_pixels() {
        let near = |pixel: &image::Rgb<u8>, expected: [u8; 3]| {
            pixel.0.iter().zip(expected).all(|(own, expected)| own.abs_diff(expected) <= 4)
        };
        for format in [Format::Png, Format::Jpeg, Format::Webp] {
            let same = reencoded(format, &plain(), &ColorProfile::new_srgb());
            assert!(near(same.get_pixel(8, 8), [200, 60, 40]), "{format:?} {:?}", same.get_pixel(8, 8));
            let wide = reencoded(format, &plain(), &ColorProfile::new_display_p3());
            assert!(near(wide.get_pixel(8, 8), [218, 43, 21]), "{format:?} {:?}", wide.get_pixel(8, 8));
        }
        let grey = GrayImage::from_pixel(4, 4, image::Luma([55])).into();
        let linear = reencoded(Format::Png, &grey, &ColorProfile::new_gray_with_gamma(1.0));
        assert!(near(linear.get_pixel(0, 0), [128, 128, 128]), "{:?}", linear.get_pixel(0, 0));
    }

    #[test]
    fn every_kind_of_pixel_is_converted() {
        let (colour, grey) = (ColorProfile::new_display_p3(), ColorProfile::new_gray_with_gamma(1.0));
        let (colour, grey) = (colour.encode().unwrap(), grey.encode().unwrap());
        let image = plain();
        for (pixels, own, other) in [
            (DynamicImage::from(image.to_rgb8()), &colour, &grey),
            (image.to_rgba8().into(), &colour, &grey),
            (image.to_rgb16().into(), &colour, &grey),
            (image.to_rgba16().into(), &colour, &grey),
            (image.to_luma8().into(), &grey, &colour),
            (image.to_luma_alpha8().into(), &grey, &colour),
            (image.to_luma16().into(), &grey, &colour),
            (image.to_luma_alpha16().into(), &grey, &colour),
        ] {
            let kind = pixels.color();
            let converted = to_srgb(pixels.clone(), own);
            assert_eq!((converted.color(), converted.width()), (kind, 32));
            assert_ne!(converted, pixels, "{kind:?}");
            assert_eq!(to_srgb(pixels.clone(), other), pixels, "{kind:?} with the profile of others");
        }
    }

    proptest! {
        /// Whatever the bytes of a profile are, the image keeps its size.
        #[test]
        fn no_profile_changes_the_size(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..12), end in any::<proptest::sample::Index>()) {
            let mut profile = ColorProfile::new_display_p3().encode().unwrap();
            for (at, byte) in changes {
                let at = at.index(profile.len());
                profile[at] = byte;
            }
            profile.truncate(profile.len() - end.index(40));
            let after = to_srgb(plain(), &profile);
            prop_assert_eq!((after.width(), after.height(), after.color()), (32, 16, plain().color()));
        }
    }
}
