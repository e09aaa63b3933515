//! What the figures of papers are drawn with: colors, axes, and names of lines.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

pub(super) type Drawn = Result<(), Box<dyn std::error::Error>>;
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub(super) const TITLE: u32 = 46;
pub(super) const FONT: &str = "sans-serif";
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
pub(super) const FAINT: RGBColor = RGBColor(150, 150, 150);
/// One for each column.
pub(super) const COLORS: [RGBColor; 4] =
    [RGBColor(0, 90, 170), RGBColor(0, 130, 90), RGBColor(130, 60, 150), RGBColor(110, 90, 30)];

pub(super) fn chart<'a, 'b>(
    area: &'a Area<'b>,
    caption: &str,
    [x, y]: [(f64, f64); 2],
) -> Result<Chart<'a, 'b>, Box<dyn std::error::Error>> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(10).margin_right(24).x_label_area_size(40).y_label_area_size(64);
    if !caption.is_empty() {
        builder.caption(caption, (FONT, 17).into_font().color(&INK));
    }
    Ok(builder.build_cartesian_2d(x.0..x.1, y.0..y.1)?)
}

pub(super) fn mesh(chart: &mut Chart<'_, '_>, x: &str, y: &str) -> Drawn {
    let [across, up] = [chart.x_range(), chart.y_range()].map(|range| decimals(range.end - range.start));
    // Trailing zeros are left out across.
    let tenths = libm::pow(10.0, across.max(1) as f64);
    let column = |value: &f64| format!("{}", (value * tenths).round() / tenths);
    let row = |value: &f64| format!("{value:.up$}");
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(FAINT.mix(0.25)).axis_style(FAINT);
    mesh.label_style((FONT, 13).into_font().color(&INK)).x_desc(x).y_desc(y).x_labels(8).y_labels(6);
    mesh.x_label_formatter(&column).y_label_formatter(&row);
    mesh.draw()?;
    Ok(())
}

/// Decimals that tell the labels of an axis of this length apart.
pub(super) fn decimals(length: f64) -> usize {
    if length.is_nan() || length >= 5.0 || length <= 0.0 {
        return 0;
    }
    libm::ceil(-libm::log10(length / 5.0)).clamp(0.0, 12.0) as usize
}

pub(super) fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, position: SeriesLabelPosition) -> Drawn {
    let style = (FONT, 13).into_font().color(&INK);
    let mut labels = chart.configure_series_labels();
    labels.position(position).background_style(WHITE.mix(0.85)).label_font(style).margin(10);
    labels.draw()?;
    Ok(())
}

/// A color as `#rrggbb`.
pub(super) fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::decimals;

    #[test]
    fn labels_of_a_short_axis_differ() {
        assert_eq!([5e4, 10.0, 5.0, 3.0, 0.5, 0.2, 0.004, 0.0].map(decimals), [0, 0, 0, 1, 1, 2, 4, 0]);
    }
}
