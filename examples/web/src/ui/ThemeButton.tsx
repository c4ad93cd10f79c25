import { MoonIcon, SunIcon } from "./icons";
import { chooseTheme, useTheme } from "./theme";

export function ThemeButton() {
  const theme = useTheme();
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button className="icon" aria-label={`Use the ${other} theme`} onClick={() => chooseTheme(other)}>
      {theme === "dark" ? <SunIcon /> : <MoonIcon />}
    </button>
  );
}
