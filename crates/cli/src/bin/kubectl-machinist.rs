//! `machinist` as a plugin of kubectl: `kubectl machinist status`.

fn main() -> std::process::ExitCode {
    machinist_cli::main()
}
