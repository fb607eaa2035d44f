//! How many is "40%" of so many?

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::decision::FieldError;

/// A number, or a share of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    Number(i32),
    Percent(i32),
}

impl Share {
    /// Reads a field; the error names it.
    pub fn read(path: &str, value: &IntOrString) -> Result<Self, FieldError> {
        let refuse = |shown: String| {
            let problem = format!(
                "Invalid value: {shown}: must be either an int or a percentage, such as \"40%\""
            );
            FieldError::new(path, problem)
        };
        match value {
            IntOrString::Int(number) if *number < 0 => Err(refuse(number.to_string())),
            IntOrString::Int(number) => Ok(Self::Number(*number)),
            IntOrString::String(text) => {
                let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<i32>().ok());
                percent
                    .filter(|percent| *percent >= 0)
                    .map(Self::Percent)
                    .ok_or_else(|| refuse(format!("{text:?}")))
            }
        }
    }

    pub fn rounded_down(self, total: i32) -> i32 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => scaled(percent, total, 0),
        }
    }

    pub fn rounded_up(self, total: i32) -> i32 {
        match self {
            Self::Number(number) => number,
            Self::Percent(percent) => scaled(percent, total, 99),
        }
    }
}

fn scaled(percent: i32, total: i32, rest: i64) -> i32 {
    let product = i64::from(percent).saturating_mul(i64::from(total.max(0)));
    i32::try_from(product.saturating_add(rest) / 100).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_rounded_to_the_side_that_is_asked_for() {
        let third = Share::read("f", &IntOrString::String("33%".to_owned())).unwrap();
        assert_eq!((third.rounded_down(10), third.rounded_up(10)), (3, 4));
        assert_eq!((third.rounded_down(0), third.rounded_up(0)), (0, 0));
        let two = Share::read("f", &IntOrString::Int(2)).unwrap();
        assert_eq!((two.rounded_down(10), two.rounded_up(10)), (2, 2));
    }

    #[test]
    fn what_is_no_share_is_refused_by_the_name_of_its_field() {
        for bad in ["two", "%", "-1%", "5"] {
            let error = Share::read("spec.x", &IntOrString::String(bad.to_owned())).unwrap_err();
            assert!(error.to_string().starts_with("spec.x: Invalid value"), "{error}");
        }
        Share::read("spec.x", &IntOrString::Int(-1)).unwrap_err();
    }
}
