import type { MouseEvent, ReactNode } from "react";
import { Count } from "./Count";

interface Props {
  name: string;
  count: number;
  isOn: boolean;
  isChanging: boolean;
  onPress: () => void;
  className?: string;
  children: ReactNode;
}

/** A button with an icon and a count, which switches something on and off. */
export function Action({ name, count, isOn, isChanging, onPress, className = "", children }: Props) {
  function press(event: MouseEvent) {
    const isDoubleClick = event.detail > 1; // counts once
    if (!isChanging && !isDoubleClick) onPress();
  }

  return (
    <button
      className={`action optimistic ${className}`}
      aria-pressed={isOn}
      aria-disabled={isChanging}
      onClick={press}
    >
      {children}
      <Count name={name} count={count} />
    </button>
  );
}
