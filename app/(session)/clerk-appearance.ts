// The outline of the input fields in the identity provider's components has too little contrast (WCAG 1.4.11), so these rules
// replace the outline. `&&` repeats the class in the selector, so that the rule has a higher specificity than the component's.
const field = {
  '&&[data-variant]': { boxShadow: '0 0 0 1px var(--line-strong)' },
  '&&[data-variant]:focus': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][data-focus-within="true"]': { boxShadow: '0 0 0 2px var(--brand)' },
  '&&[data-variant][aria-invalid="true"]': { boxShadow: '0 0 0 2px var(--danger)' },
};

/** Makes the submit button of the provider's forms look like the site's own buttons, which have no shadow and no gradient. */
const primaryButton = {
  minHeight: '2.5rem',
  // With forced colors, a browser removes the background, so the button needs a border.
  '&&[data-variant]': { boxShadow: 'none', '@media (forced-colors: active)': { border: '1px solid' } },
  '&&[data-variant]::after': { background: 'none' },
};

/**
 * Applies the site's CSS variables to the provider's components, so that the components follow the light or dark color scheme.
 * The components define variables such as `--accent` on their own elements. A variable of the site must not have one of these
 * names, because the components would override its value.
 */
export const clerkAppearance = {
  variables: {
    colorPrimary: 'var(--brand)',
    colorPrimaryForeground: 'var(--on-brand)',
    colorBackground: 'var(--surface)',
    colorForeground: 'var(--ink)',
    colorMuted: 'var(--sunken)',
    colorMutedForeground: 'var(--ink-soft)',
    colorNeutral: 'var(--ink)',
    colorInput: 'var(--surface)',
    colorInputForeground: 'var(--ink)',
    colorBorder: 'var(--line-strong)',
    colorRing: 'var(--brand)',
    colorDanger: 'var(--danger)',
    colorShadow: 'var(--shadow)',
    borderRadius: '0.5rem',
    fontFamily: 'var(--sans)',
    fontFamilyButtons: 'var(--sans)',
    fontSize: '0.9375rem',
  },
  elements: {
    formFieldInput: field,
    otpCodeFieldInput: field,
    formButtonPrimary: primaryButton,
  },
};

/** Makes a form as wide as its container. By default, the maximum width of a form depends on the window. */
export const fillingAppearance = {
  elements: { rootBox: { width: '100%' }, cardBox: { width: '100%', maxWidth: '100%' } },
};
