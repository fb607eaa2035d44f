//! The program `machinist`.

fn main() -> std::process::ExitCode {
    machinist_cli::main()
}
