use super::*;

#[test]
fn percentages_read_back_as_the_same_number() {
    for share in [0.0, 1.0, 0.5, 0.015, 0.001, 1e-6, 0.1 + 0.2, 0.3333333333333333, 1.5e-9, 0.07] {
        let text = percent(share);
        assert_eq!(super::super::units::percent(&text), Ok(share), "{text}");
    }
    assert_eq!([percent(0.015), percent(0.5), percent(1.0)], ["1.5 %", "50 %", "100 %"]);
}
