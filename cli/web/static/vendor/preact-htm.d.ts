/** The names of preact and htm that the page uses, with the types that it needs of them. */

export interface VNode { type: unknown; props: Record<string, unknown>; key: unknown }
export type Child = VNode | string | number | boolean | null | undefined | Child[];
export type Ref<T> = { current: T };

export function html(strings: TemplateStringsArray, ...values: unknown[]): VNode;
export function render(node: Child, parent: Element): void;
export function useState<T>(initial: T | (() => T)): [T, (value: T | ((before: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useRef<T>(initial: T): Ref<T>;
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
